# SPDX-License-Identifier: Apache-2.0
# find_package(maskc): the targets maskc::maskc (compiles and runs) and maskc::runtime (runs kernel files).
# The file finds what lies beside it, so that an installed tree may be moved.
get_filename_component(_maskc_lib "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)
find_path(_maskc_include maskc.h NO_DEFAULT_PATH NO_CACHE
  PATHS "${_maskc_lib}/../include" "${_maskc_lib}/../../include")
foreach(_maskc_name maskc runtime)
  if(NOT TARGET maskc::${_maskc_name})
    set(_maskc_file "${_maskc_lib}/libmaskc.so")
    if(_maskc_name STREQUAL "runtime")
      set(_maskc_file "${_maskc_lib}/libmaskc-runtime.so")
    endif()
    add_library(maskc::${_maskc_name} SHARED IMPORTED)
    set_target_properties(maskc::${_maskc_name} PROPERTIES
      IMPORTED_LOCATION "${_maskc_file}" INTERFACE_INCLUDE_DIRECTORIES "${_maskc_include}")
  endif()
endforeach()

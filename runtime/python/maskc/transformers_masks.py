# SPDX-License-Identifier: Apache-2.0
def from_transformers(config):
    raise NotImplementedError

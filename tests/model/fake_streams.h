/* SPDX-License-Identifier: Apache-2.0 */
/* Streams, events and graphs of the mock GPU: a part of fake_gpu.c. */
#pragma once

FAKE(cuStreamCreate, struct cu_stream **stream, unsigned flags)
{
    INSIDE;
    if (flags != CU_STREAM_NON_BLOCKING)
        return fail(INVALID_VALUE);
    fake_gpu.streams++;
    struct cu_stream *s = calloc(1, sizeof *s);
    s->last = &s->first;
    s->next = all_streams;
    all_streams = s;
    *stream = s;
    return 0;
}

FAKE(cuStreamDestroy_v2, struct cu_stream *stream)
{
    struct cu_stream **at = &all_streams;
    fake_gpu.early += !unwaited && stream->first;
    run_all();
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    fake_gpu.streams--;
    free(stream);
    return 0;
}

FAKE(cuStreamSynchronize, struct cu_stream *stream)
{
    INSIDE;
    if (!stream)
        return fail(captures_now ? CAPTURE_UNSUPPORTED : 0);
    return fail(stream->capture ? CAPTURE_UNSUPPORTED : run_until(stream, stream->given));
}

/* Much time has passed. */
FAKE(cuStreamQuery, struct cu_stream *stream)
{
    INSIDE;
    fake_gpu.asked = stream;
    return fail(stream->capture ? CAPTURE_UNSUPPORTED : run_until(stream, stream->given));
}

struct cu_event {
    struct cu_stream *stream;
    int given;
};

FAKE(cuEventCreate, struct cu_event **event, unsigned flags)
{
    INSIDE;
    if (flags != CU_EVENT_DISABLE_TIMING)
        return fail(INVALID_VALUE);
    fake_gpu.events++;
    *event = calloc(1, sizeof **event);
    return 0;
}

FAKE(cuEventDestroy_v2, struct cu_event *event)
{
    fake_gpu.events--;
    free(event);
    return 0;
}

FAKE(cuEventRecord, struct cu_event *event, struct cu_stream *stream)
{
    INSIDE;
    *event = (struct cu_event){stream, stream->given};
    return 0;
}

FAKE(cuStreamWaitEvent, struct cu_stream *stream, struct cu_event *event, unsigned flags)
{
    INSIDE;
    if (flags)
        return fail(INVALID_VALUE);
    stream->before = event->stream;
    stream->up_to = event->given;
    return take(stream, &(struct work){
                            .kind = WORK_WAIT, .stream = event->stream, .up_to = event->given});
}

FAKE(cuEventSynchronize, struct cu_event *event)
{
    INSIDE;
    return fail(run_until(event->stream, event->given));
}

FAKE(cuStreamBeginCapture_v2, struct cu_stream *stream, int mode)
{
    INSIDE;
    if (stream->capture || mode != CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
        return fail(INVALID_VALUE);
    fake_gpu.captures++;
    captures_now++;
    stream->capture = calloc(1, sizeof *stream->capture);
    stream->capture->last = &stream->capture->first;
    return 0;
}

/* Ends the capture, come what may. */
FAKE(cuStreamEndCapture, struct cu_stream *stream, struct cu_graph **graph)
{
    struct cu_graph *made = stream->capture;
    stream->capture = NULL;
    captures_now -= made != NULL;
    *graph = NULL;
    int r = count_call(__func__);
    if (r || !made || !fake_gpu.pushed) {
        free_works(made ? made->first : NULL);
        free(made);
        return fail(r ? r : INVALID_VALUE);
    }
    fake_gpu.graphs++;
    *graph = made;
    return 0;
}

FAKE(cuGraphDestroy, struct cu_graph *graph)
{
    fake_gpu.graphs--;
    free_works(graph->first);
    free(graph);
    return 0;
}

/* Takes the graph's works over. */
FAKE(cuGraphInstantiateWithFlags, struct cu_graph_exec **exec, struct cu_graph *graph,
     unsigned long long flags)
{
    INSIDE;
    if (flags)
        return fail(INVALID_VALUE);
    fake_gpu.graphs++;
    *exec = calloc(1, sizeof **exec);
    (*exec)->graph.first = graph->first;
    graph->first = NULL;
    return 0;
}

FAKE(cuGraphExecDestroy, struct cu_graph_exec *exec)
{
    fake_gpu.graphs--;
    free_works(exec->graph.first);
    free(exec);
    return 0;
}

static int take_copy(struct cu_stream *stream, const struct work *w)
{
    struct work own = *w;
    if (w->args) {
        const size_t bytes = fake_gpu.args_bytes(w->function.name);
        own.args = malloc(bytes);
        memcpy(own.args, w->args, bytes);
    }
    return take(stream, &own);
}

FAKE(cuGraphLaunch, struct cu_graph_exec *exec, struct cu_stream *stream)
{
    INSIDE;
    fake_gpu.replays++;
    int r = fail(stream->capture ? CAPTURE_UNSUPPORTED : 0);
    for (const struct work *w = exec->graph.first; w && !r; w = w->next)
        r = take_copy(stream, w);
    return r;
}

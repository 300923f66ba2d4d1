// Measures the tasks of a page: their duration, and their time on the processor.

/** Starts recording the tasks of all threads of the browser. */
export const recordTasks = async (browser, page) => {
  await browser.startTracing(page, { categories: ['toplevel'] });
  return {
    /** Stops recording. Returns the tasks of the main threads of pages that took 50 ms or more, longest first: the duration, and the processor time. */
    async stop() {
      const { traceEvents } = JSON.parse(await browser.stopTracing());
      const mains = new Set(traceEvents.filter(isMain).map(threadOf));
      return traceEvents
        .filter((event) => event.name === 'ThreadControllerImpl::RunTask' && event.dur >= 50_000)
        .filter((event) => mains.has(threadOf(event)))
        .map(({ dur, tdur }) => ({ ms: Math.round(dur / 1_000), busyMs: Math.round(tdur / 1_000) }))
        .sort((one, other) => other.ms - one.ms);
    },
  };
};

const threadOf = ({ pid, tid }) => `${pid} ${tid}`;
const isMain = ({ ph, name, args }) => ph === 'M' && name === 'thread_name' && args.name === 'CrRendererMain';

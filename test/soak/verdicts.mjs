// @ts-check
/**
 * Holds what the operators said against what came.
 *
 * @param {object} run
 * @param {import('./truth.mjs').Truth} run.truth
 * @param {readonly import('rx-trade-feed').FeedWindow<unknown>[]} run.windows
 * @param {{ processed: number, dropped: number }} run.slow
 * @returns {{ ok: boolean, what: string }[]}
 */
export const verdicts = ({ truth, windows, slow }) => {
  const { from, to } = truth.outage;
  const isAround = (/** @type {{ start: number, end: number }} */ { start, end }) =>
    from < end && (to > start || from >= start);
  const around = windows.filter(isAround);
  // The feed did not fill what began before it was open, and the last one.
  const filled = windows.slice(0, -1).filter(({ start }) => start >= truth.openedAt);
  const elsewhere = filled.filter((window) => !isAround(window));
  return [
    { ok: truth.holes === 1 && truth.missing > 0, what: `one outage, in which ${truth.missing} frames were missed` },
    {
      ok: windows.every(({ start }, n) => n === 0 || start === (windows[n - 1]?.end ?? 0)),
      what: `${windows.length} windows, one behind the other`,
    },
    {
      ok:
        around.length > 1 &&
        around.every(({ complete, gaps: [gap] }) => !complete && gap?.failure.code === 'access-expired'),
      what: `the ${around.length} windows of the outage say so, and why`,
    },
    {
      ok: elsewhere.length > 0 && elsewhere.every(({ complete, gaps }) => complete && gaps.length === 0),
      what: `the ${elsewhere.length} others that the feed filled are complete`,
    },
    {
      ok: windows.every(({ start, count }) => count === (truth.kept.get(start) ?? 0)),
      what: 'each window counts exactly the frames that came in its time',
    },
    {
      ok: slow.processed + slow.dropped === truth.frames && slow.dropped > 0 && slow.processed > 0,
      what: 'what the slow consumer processed and what was dropped add up to what was sent',
    },
    { ok: !truth.disconnects.includes('client-too-slow'), what: 'nobody was too slow for the service (no 1013)' },
  ];
};

/**
 * Judges the figures of a run on a machine that has nothing else to do.
 *
 * @param {object} run
 * @param {import('./truth.mjs').Truth} run.truth
 * @param {readonly number[]} run.memoryMb
 * @param {{ frames: number, missing: number }} run.expected at the rate asked for, and at least
 * @returns {{ ok: boolean, what: string }[]}
 */
export const measured = ({ truth, memoryMb, expected }) => {
  const samples = memoryMb.length;
  const grown = mean(memoryMb.slice(-samples / 3)) - mean(memoryMb.slice(samples / 6, samples / 2));
  return [
    {
      ok: truth.frames + truth.missing > expected.frames * 0.9 && truth.missing > expected.missing * 0.9,
      what: 'the rate was held',
    },
    {
      ok: grown < 5,
      what: `the memory (heap and buffers) is flat: ${grown.toFixed(1)} MB between its middle and its end`,
    },
  ];
};

const mean = (/** @type {readonly number[]} */ list) => list.reduce((sum, each) => sum + each, 0) / list.length;

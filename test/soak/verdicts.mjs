// @ts-check
/**
 * Holds what the operators said against what came.
 *
 * @param {object} run
 * @param {import('./truth.mjs').Truth} run.truth
 * @param {readonly import('rx-trade-feed').FeedWindow<unknown>[]} run.windows
 * @param {{ processed: number, dropped: number }} run.slow
 * @param {readonly number[]} run.memoryMb
 * @param {readonly string[]} run.disconnects
 * @param {{ frames: number, missing: number }} run.expected at the rate asked for, and at least
 * @returns {{ ok: boolean, what: string }[]}
 */
export const verdicts = ({ truth, windows, slow, memoryMb, disconnects, expected }) => {
  const [[from, to] = [0, 0]] = truth.holes;
  const reachesInto = (/** @type {number} */ marginMs) => (/** @type {{ start: number, end: number }} */ window) =>
    from - marginMs < window.end && to + marginMs >= window.start;
  // The last frame came a few ms before the end of the connection, and the first one a few ms after the opening of the next.
  const marginMs = 50;
  const around = windows.filter(reachesInto(-marginMs));
  const elsewhere = windows.filter((window) => !reachesInto(marginMs)(window)).slice(1, -1);
  const flat =
    mean(memoryMb.slice(-memoryMb.length / 3)) - mean(memoryMb.slice(memoryMb.length / 6, memoryMb.length / 2));
  return [
    { ok: truth.frames + truth.missing > expected.frames * 0.9, what: 'the rate was held' },
    {
      ok: truth.holes.length === 1 && truth.missing > expected.missing * 0.9,
      what: `one outage, in which ${truth.missing} frames were missed`,
    },
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
      what: `the ${elsewhere.length} others are complete, but for the first and the last, which the feed did not fill`,
    },
    {
      ok: windows.every(({ start, count }) => count === (truth.kept.get(start) ?? 0)),
      what: 'each window counts exactly the frames that came in its time',
    },
    {
      ok: slow.processed + slow.dropped === truth.frames && slow.dropped > 0 && slow.processed > 0,
      what: 'what the slow consumer processed and what was dropped add up to what was sent',
    },
    { ok: !disconnects.includes('client-too-slow'), what: 'nobody was too slow for the service (no 1013)' },
    {
      ok: flat < 5,
      what: `the memory (heap and buffers) is flat: ${flat.toFixed(1)} MB between its middle and its end`,
    },
  ];
};

const mean = (/** @type {readonly number[]} */ list) => list.reduce((sum, each) => sum + each, 0) / list.length;

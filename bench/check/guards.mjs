// What CI guards: the ratios of the goals that a slip in the receive path or in the decode guard would bring down.

/**
 * By how much a ratio may fall short of its goal before the check fails.
 *
 * On a machine with seven times more to do than it has cores the median of five short pairs was 27 % below the goal at worst; what is
 * guarded against, frames that all go through `ws`, is 53 to 64 % below.
 */
export const MARGIN = 0.35;

const replay = (over, under, size, atLeast, what) => ({
  id: `${over}/${under}/${size}`,
  what: `${what}, ${size} B`,
  over: ['replay', over, size, 'text'],
  under: ['replay', under, size, 'text'],
  atLeast,
});
const slower = 'rxjs/webSocket over ours, as text';
const operators = 'ws with toString() over ours with six operators';

/** Each divides the cost of `over` by that of `under`. */
export const guards = [
  replay('rxjs', 'ours', 200, 3, slower),
  replay('rxjs', 'ours', 1024, 2.3, slower),
  replay('ws', 'ours6', 200, 1.3, operators),
  replay('ws', 'ours6', 1024, 1.3, operators),
  {
    id: 'parse/guard',
    what: 'JSON.parse of a transaction over its compiled guard',
    over: ['decode', 'parse'],
    under: ['decode', 'guard'],
    atLeast: 20,
  },
  {
    id: 'decode/guard',
    what: 'codec.decode of a transaction over its compiled guard',
    over: ['decode', 'io-ts decode'],
    under: ['decode', 'guard'],
    atLeast: 20,
  },
];

/** The least that passes. */
export const leastOf = ({ atLeast }) => atLeast * (1 - MARGIN);

/** The samples that some guards need, each once. */
export const contendersOf = (some) => {
  const all = some.flatMap(({ over, under }) => [over, under]);
  return [...new Map(all.map((each) => [each.join(' '), each])).values()];
};

/**
 * Returns the guards whose ratio is too low, each with the figures. A round that reaches the goal itself shows that the path is fast and the
 * machine busy: without the fast path no round does.
 */
export const brokenOf = (some, ratioOf) =>
  some
    .map((guard) => ({ ...guard, ratio: ratioOf(guard) }))
    .filter((guard) => !(guard.ratio.median >= leastOf(guard) || guard.ratio.max >= guard.atLeast));

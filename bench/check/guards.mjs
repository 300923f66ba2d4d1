// The ratios that `npm run bench -- check` checks: they fall if receiving, filtering or an import becomes slower.

/**
 * How far a ratio may be below its goal, as a share of the goal.
 *
 * With seven busy processes for each core, the median of five short pairs was at worst 27 % below the goal. If all frames go through
 * `ws`, which the check must detect, it is 53 to 64 % below.
 */
export const MARGIN = 0.35;

const replay = (over, under, size, atLeast, what) => ({
  what: `${what}, ${size} B`,
  over: ['replay', over, size, 'text'],
  under: ['replay', under, size, 'text'],
  atLeast,
});
const filter = (way, size, atLeast, what) => ({
  what: `${what}, ${size} B`,
  over: ['filter', 'JSON.parse', size],
  under: ['filter', way, size],
  atLeast,
});
const slower = 'rxjs/webSocket over ours, as text';
const operators = 'ws with toString() over ours with six operators';

/** The ratios: the cost of `over` divided by the cost of `under`. */
export const guards = [
  replay('rxjs', 'ours', 200, 3, slower),
  replay('rxjs', 'ours', 1024, 2.3, slower),
  replay('ws', 'ours6', 200, 1.3, operators),
  replay('ws', 'ours6', 1024, 1.3, operators),
  filter('one value', 1024, 5, 'JSON.parse over whereField with a value'),
  filter('500 needles', 1024, 2, 'JSON.parse over whereBytes with 500 needles'),
  {
    what: 'importing the dependencies over importing this package',
    over: ['import', 'the dependencies'],
    under: ['import', 'ours'],
    atLeast: 1.7,
  },
  {
    what: 'importing rxjs over importing ./operators',
    over: ['import', 'rxjs'],
    under: ['import', './operators'],
    atLeast: 0.9,
  },
];

/** Returns the smallest ratio that passes. */
export const minimumOf = ({ atLeast }) => atLeast * (1 - MARGIN);

/** Returns whether a round reached the goal. It shows that the code is fast and the machine busy: slower code reaches it in no round. */
export const hasReached = ({ atLeast }, { max }) => max >= atLeast;

/** Returns the guards whose ratio is too low, with their figures. */
export const brokenOf = (some, ratioOf) =>
  some
    .map((guard) => ({ ...guard, ratio: ratioOf(guard) }))
    .filter((guard) => !(guard.ratio.median >= minimumOf(guard) || hasReached(guard, guard.ratio)));

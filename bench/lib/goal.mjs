// A goal and its measured value, as one row of the table.
import { summary } from './stats.mjs';

/**
 * Compares a ratio with a goal.
 *
 * @param id - stable and unique in its benchmark: `replay/200/rxjs`
 * @param what - a text for readers: what is divided by what
 * @param ratio - the result of `pairedRatio`, or a number, such as a count
 * @param atLeast, atMost - the goal: one of them
 * @param note - a remark that is shown if the goal is missed
 */
export const goal = ({ id, what, ratio, atLeast, atMost, note }) => {
  if ((atLeast === undefined) === (atMost === undefined)) throw new TypeError(`${id}: set either atLeast or atMost.`);
  const { median: measured, ...spread } = typeof ratio === 'number' ? summary([ratio]) : ratio;
  return {
    ...{ id, what, wanted: atLeast === undefined ? `at most ${atMost}` : `at least ${atLeast}` },
    ...{ measured, ...spread, met: atLeast === undefined ? measured <= atMost : measured >= atLeast },
    ...(note && { note }),
  };
};

// A goal and what was measured, as one row of the table.
import { summary } from './stats.mjs';

/**
 * Holds a ratio against a goal.
 *
 * @param id - stable, unique in its bench: `replay/200/rxjs`
 * @param what - for a reader: what is divided by what
 * @param ratio - of `pairedRatio`, or a number that is no ratio of pairs (a count, say)
 * @param atLeast, atMost - the goal: one of them
 * @param note - what was tried, if it is missed
 */
export const goal = ({ id, what, ratio, atLeast, atMost, note }) => {
  if ((atLeast === undefined) === (atMost === undefined)) throw new TypeError(`${id}: either atLeast or atMost.`);
  const measured = typeof ratio === 'number' ? summary([ratio]) : ratio;
  const met = atLeast === undefined ? measured.median <= atMost : measured.median >= atLeast;
  const wanted = atLeast ?? atMost;
  // In parts of the goal, so that 0.03 of 0.05 and 2 of 3 read alike; a goal of nothing is missed by what there is.
  const missedBy = met ? 0 : wanted === 0 ? measured.median : Math.abs(measured.median / wanted - 1);
  return {
    id,
    what,
    ...(atLeast === undefined ? { atMost } : { atLeast }),
    ...measured,
    met,
    missedBy,
    ...(note && { note }),
  };
};

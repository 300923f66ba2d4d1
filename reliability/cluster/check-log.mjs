/**
 * Checks what a replica has emitted: frames in order, none twice, and each loss in a gap. A gap of the cluster has the exact number of missed
 * frames; a change of the owner and an outage of the service have none.
 *
 * @param {readonly object[]} log - the entries of a replica
 * @returns {{ readonly violations: readonly string[], readonly frames: number, readonly missed: number }}
 */
export const checkLog = (log) => {
  const violations = [];
  let last;
  let frames = 0;
  let missed = 0;
  let hasGap = false;
  let counted = 0;
  for (const entry of log) {
    if (entry.type === 'gap') {
      hasGap = true;
      counted = entry.missed === undefined ? Number.NaN : counted + entry.missed;
    }
    // A subscription after an error begins again.
    if (entry.type === 'error') last = undefined;
    if (entry.type !== 'frames') continue;
    const { from, to } = entry;
    const lost = last === undefined ? 0 : from - last - 1;
    if (lost < 0) violations.push(`frame ${from} after ${last}`);
    if (lost > 0 && !hasGap) violations.push(`no gap between ${last} and ${from}`);
    if (last !== undefined && hasGap && !Number.isNaN(counted) && counted !== lost)
      violations.push(`${lost} frames are missing before ${from}, the gaps say ${counted}`);
    frames += to - from + 1;
    missed += Math.max(0, lost);
    last = to;
    hasGap = false;
    counted = 0;
  }
  return { violations, frames, missed };
};

// The rules of a check, and the report of a run: tables on stdout, and reliability/results/NAME.json.
import { resultText } from '../../bench/lib/table.mjs';
import { writeResult } from '../../bench/lib/write-result.mjs';

// A rule and its measured value are a row of the report. A value that isn't a number meets no rule.
const row = (what, wanted, measured, unit, met) => ({
  what,
  wanted: unit ? `${wanted} ${unit}` : wanted,
  measured: measured ?? '–',
  met,
});

/** Creates the rule that a value is at most a limit. */
export const atMost = (what, measured, limit, unit = '') =>
  row(what, `at most ${limit}`, measured, unit, measured <= limit);

/** Creates the rule that a value is at least a limit. */
export const atLeast = (what, measured, limit, unit = '') =>
  row(what, `at least ${limit}`, measured, unit, measured >= limit);

/** Creates the rule that a value is exactly another. */
export const exactly = (what, measured, wanted, unit = '') =>
  row(what, String(wanted), measured, unit, measured === wanted);

/** Creates the rule that a condition is met. `measured` is the text of the report. */
export const holds = (what, met, measured = met ? 'yes' : 'no') => row(what, 'yes', measured, '', met === true);

/**
 * Prints a result and writes it as bench/lib/write-result.mjs says. The exit code is 1 if a rule is broken.
 *
 * @param keep - false for a short run: its file goes to temp/reliability
 */
export const report = ({ keep = true, ...result }) => {
  const written = writeResult(keep ? 'reliability/results/' : 'temp/reliability/', result);
  console.log(resultText(written) + (keep ? '' : 'This was a short run, which is no result.\n'));
  if (written.goals.some(({ met }) => !met)) process.exitCode = 1;
};

import { printable } from '../../protocol/printable.js';
import { type Line, printed } from '../view/line.js';
import { counted } from '../view/units.js';
import type { Finding } from './check.js';

/** A finding with the name of its check. */
export interface NamedFinding extends Finding {
  readonly name: string;
}

const styles = { ok: 'green', warning: 'yellow', failed: 'red', skipped: 'dim' } as const;

/** Returns the lines of a finding: what is the case, and what to do. */
export const findingLines = ({ name, status, text, advice }: NamedFinding, hasColors: boolean): readonly string[] => {
  const line = (...spans: Line): string => printed(spans, Infinity, hasColors);
  return [
    line([` ${status.padEnd(9)}`, styles[status]], [name.padEnd(14), 'bold'], [printable(text)]),
    ...(advice === undefined ? [] : [line([`${' '.repeat(24)}-> ${printable(advice)}`])]),
  ];
};

/** Returns the last line of the report. */
export const conclusion = (findings: readonly Finding[]): string => {
  const number = (status: Finding['status']): number => findings.filter((each) => each.status === status).length;
  if (number('failed') > 0) return 'The feed cannot work. The later checks were skipped.';
  const warnings = number('warning');
  return warnings === 0 ? 'No problem was found.' : `The feed works, with ${counted(warnings, 'warning')}.`;
};

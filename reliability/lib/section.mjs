// The result of a run as text for a page of docs/reliability.
import { shown } from '../../bench/lib/fill.mjs';
import { machineLine } from '../../bench/lib/machine.mjs';
import { table } from '../../bench/lib/table.mjs';

/** Returns the table of the rules and their measured values. */
export const goalTable = (goals) =>
  table(
    ['rule', 'wanted', 'measured', ''],
    goals.map(({ what, wanted, measured, met }) => [what, wanted, measured, met ? 'met' : '**broken**']),
  );

/** Returns the section: the command, the machine, the rules, the charts and tables, and the facts. */
export const sectionOf = ({ command, machine, goals, ...rest }, folder) =>
  [`\`${command}\`: ${machineLine(machine)}.`, goals.length > 0 && goalTable(goals), ...shown(rest, folder)]
    .filter(Boolean)
    .join('\n\n');

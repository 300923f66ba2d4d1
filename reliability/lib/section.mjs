// What a run found, as text for docs/reliability.md.
import { shown } from '../../bench/lib/fill.mjs';
import { machineLine } from '../../bench/lib/machine.mjs';
import { table } from '../../bench/lib/table.mjs';

/** The rules, each beside what was measured. */
export const goalTable = (goals) =>
  table(
    ['rule', 'wanted', 'measured', ''],
    goals.map(({ what, wanted, measured, met }) => [what, wanted, measured, met ? 'held' : '**broken**']),
  );

/** How it was run, its rules, its charts and tables, its facts. */
export const sectionOf = ({ command, machine, goals, ...rest }) =>
  [`\`${command}\`: ${machineLine(machine)}.`, goals.length > 0 && goalTable(goals), ...shown(rest, 'reliability')]
    .filter(Boolean)
    .join('\n\n');

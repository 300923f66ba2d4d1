// The pages of docs/reliability with the sections and figures of the last results.
import { readdirSync, readFileSync } from 'node:fs';
import { shown } from '../../bench/lib/fill.mjs';
import { machineLine } from '../../bench/lib/machine.mjs';
import { filledPages } from '../../bench/lib/pages.mjs';
import { root } from '../../bench/lib/root.mjs';
import { table } from '../../bench/lib/table.mjs';
import { reliabilityFigures } from './figures.mjs';

/** Returns the results by name. */
export const readResults = (folder = new URL('reliability/results/', root)) =>
  Object.fromEntries(
    readdirSync(folder)
      .filter((name) => name.endsWith('.json'))
      .map((name) => [name.replace('.json', ''), JSON.parse(readFileSync(new URL(name, folder), 'utf8'))]),
  );

/** Returns the pages of docs/reliability: texts by path. */
export const reliabilityPages = (results = readResults()) =>
  filledPages('reliability', {
    mark: 'reliability',
    sections: Object.fromEntries(
      Object.entries(results).map(([name, result]) => [name, (folder) => sectionOf(result, folder)]),
    ),
    figures: reliabilityFigures(results),
  });

/** Returns the table of the rules and their measured values. */
export const goalTable = (goals) =>
  table(
    ['rule', 'wanted', 'measured', ''],
    goals.map(({ what, wanted, measured, met }) => [what, wanted, measured, met ? 'met' : '**broken**']),
  );

/** Returns the section of a result: the command, the machine, the rules, the charts and tables, and the facts. */
const sectionOf = ({ command, machine, goals, ...rest }, folder) =>
  [`\`${command}\`: ${machineLine(machine)}.`, goals.length > 0 && goalTable(goals), ...shown(rest, folder)]
    .filter(Boolean)
    .join('\n\n');

// The pages of docs/reliability with the sections and figures of the last results.
import { readdirSync, readFileSync } from 'node:fs';
import { filledPages } from '../../bench/lib/pages.mjs';
import { root } from '../../bench/lib/root.mjs';
import { reliabilityFigures } from './figures.mjs';
import { sectionOf } from './section.mjs';

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

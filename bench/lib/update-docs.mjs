// The pages of docs/performance with the sections and figures of the last results.
import { benchmarks } from '../programs.mjs';
import { performanceFigures } from './figures.mjs';
import { image, sectionOf, summaryOf } from './fill.mjs';
import { filledPages } from './pages.mjs';
import { readWritten } from './write-result.mjs';

/** Returns the results by name. A benchmark that wasn't run has `undefined`. */
export const readResults = (folders = { results: 'bench/results/' }) =>
  Object.fromEntries(Object.keys(benchmarks).map((name) => [name, readWritten(name, folders)]));

/** Returns the pages of docs/performance: texts by path. */
export const performancePages = (results = readResults()) => {
  const sections = Object.entries(results).map(([name, result]) => [name, (folder) => sectionOf(name, result, folder)]);
  return filledPages('performance', {
    mark: 'bench',
    sections: {
      opening: (folder) => results.e2e.charts.map((chart) => image(chart, folder)).join('\n\n'),
      goals: () => summaryOf(Object.values(results).filter(Boolean)),
      ...Object.fromEntries(sections),
    },
    figures: performanceFigures(results),
  });
};

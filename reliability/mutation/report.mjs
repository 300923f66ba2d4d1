import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { atLeast } from '../lib/goal.mjs';
import { report as writeReport } from '../lib/report.mjs';
import { figuresOf, sum } from './figures.mjs';
import { folders, reportOf } from './folders.mjs';
import { reasons } from './reasons.mjs';
import { survivorsPage } from './survivors-page.mjs';
import { survivorsOf, withReasons } from './survivors.mjs';

const minScore = 85;
const page = 'reliability/mutation/survivors.md';

/**
 * Combines the Stryker reports with the reasons and prints the figures. If every folder has a report, also writes the figures and the page
 * of the survivors.
 *
 * @param note - a remark for readers of the figures
 */
export const report = async (note) => {
  const reports = folders
    .filter((folder) => existsSync(reportOf(folder)))
    .map((folder) => [folder, JSON.parse(readFileSync(reportOf(folder), 'utf8'))]);
  const figures = Object.fromEntries(reports.map(([folder, found]) => [`src/${folder}`, figuresOf(found)]));
  const total = sum(Object.values(figures));
  const survivors = reports.flatMap(([, found]) => survivorsOf(found));
  const { explained, idle } = withReasons(survivors, reasons);
  const isComplete = reports.length === folders.length;
  if (isComplete) await write(page, survivorsPage(figures, total, explained, note));
  for (const reason of isComplete ? idle : []) console.log(`A reason without a survivor: ${JSON.stringify(reason)}`);
  await writeReport({
    name: 'mutation',
    command: 'npm run reliability -- mutation',
    goals: Object.entries(figures).map(([name, { score }]) =>
      atLeast(`mutants of ${name} that a test detects`, score, minScore, '%'),
    ),
    tables: [
      {
        title: 'Mutants and their outcomes',
        columns: ['folder', 'mutants', 'killed', 'timeout', 'survived', 'not covered', 'do not load', 'score'],
        rows: Object.entries({ ...figures, total }).map(([name, of]) => [
          ...[name, of.mutants, of.killed, of.timeout, of.survived, of.noCoverage, of.errors, `${of.score} %`],
        ]),
      },
    ],
    facts: {
      survivors: explained.length,
      'without a reason': explained.filter(({ why }) => why === undefined).length,
      ...(note && { note }),
    },
    keep: isComplete,
  });
};

const write = async (path, text) =>
  writeFileSync(path, await format(text, { ...(await resolveConfig(path)), filepath: path }));

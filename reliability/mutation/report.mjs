import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { atLeast } from '../lib/goal.mjs';
import { report as writeReport } from '../lib/report.mjs';
import { reasons } from './reasons.mjs';
import { survivorsOf, survivorsPage, withReasons } from './survivors.mjs';

/** The folders of src that are mutated, the quickest first. Each is tested by the folder of the same name in test. */
export const folders = ['feed', 'protocol', 'operators', 'transport'];

/** The report that Stryker writes for a folder. */
const reportOf = (folder) => `temp/mutation/${folder}.json`;

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
  const mutants = reports.map(([folder, { files }]) => [folder, Object.values(files).flatMap((file) => file.mutants)]);
  const figures = mutants.map(([folder, all]) => [`src/${folder}`, figuresOf(all)]);
  const total = figuresOf(mutants.flatMap(([, all]) => all));
  const survivors = reports.flatMap(([, found]) => survivorsOf(found));
  const { explained, idle } = withReasons(survivors, reasons);
  const isComplete = reports.length === folders.length;
  if (isComplete) await write(page, survivorsPage(explained, note));
  for (const reason of isComplete ? idle : []) console.log(`A reason without a survivor: ${JSON.stringify(reason)}`);
  await writeReport({
    name: 'mutation',
    command: 'npm run reliability -- mutation',
    goals: figures.map(([name, { score }]) => atLeast(`mutants of ${name} that a test detects`, score, minScore, '%')),
    tables: [
      {
        title: 'Mutants and their outcomes',
        columns: ['folder', 'mutants', 'killed', 'timeout', 'survived', 'not covered', 'do not load', 'score'],
        rows: [...figures, ['total', total]].map(([name, { counts, score }]) => [name, ...counts, `${score} %`]),
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

/** Counts mutants by outcome. The score leaves out those that don't load and ignored ones. */
const figuresOf = (mutants) => {
  const count = (...statuses) => mutants.filter(({ status }) => statuses.includes(status)).length;
  const [killed, timeout] = [count('Killed'), count('Timeout')];
  const [survived, notCovered] = [count('Survived'), count('NoCoverage')];
  const valid = killed + timeout + survived + notCovered;
  return {
    counts: [mutants.length, killed, timeout, survived, notCovered, count('RuntimeError', 'CompileError')],
    score: valid === 0 ? 100 : Math.floor((10_000 * (killed + timeout)) / valid) / 100,
  };
};

const write = async (path, text) =>
  writeFileSync(path, await format(text, { ...(await resolveConfig(path)), filepath: path }));

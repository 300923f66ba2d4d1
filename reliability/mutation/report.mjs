import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { format, resolveConfig } from 'prettier';
import { atLeast } from '../lib/goal.mjs';
import { report as writeReport } from '../lib/report.mjs';
import { reasons } from './reasons.mjs';

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

const undetected = ['Survived', 'NoCoverage'];

/** Returns the mutants of a Stryker report that no test detected, each with the text before and after. */
const survivorsOf = ({ files }) =>
  Object.entries(files).flatMap(([file, { source, mutants }]) => {
    const lines = source.split('\n');
    return mutants
      .filter(({ status }) => undetected.includes(status))
      .map(({ location: { start, end }, mutatorName, replacement, status }) => ({
        file,
        line: start.line,
        code: lines[start.line - 1].trim(),
        mutator: mutatorName,
        from: cut(lines, start, end),
        to: (replacement ?? '').replace(/\s+/g, ' '),
        isCovered: status === 'Survived',
      }));
  });

const cut = (lines, start, end) => {
  const whole = lines.slice(start.line - 1, end.line);
  whole[whole.length - 1] = whole.at(-1).slice(0, end.column - 1);
  whole[0] = whole[0].slice(start.column - 1);
  return whole.join(' ').replace(/\s+/g, ' ');
};

/** Adds its reason to each survivor: the first reason that matches. `idle` are the reasons without a survivor. */
const withReasons = (survivors, reasons) => {
  const used = new Set();
  const explained = survivors.map((survivor) => {
    const reason = reasons.find((each) => matches(each, survivor));
    used.add(reason);
    return { ...survivor, why: reason?.why };
  });
  return { explained, idle: reasons.filter((reason) => !used.has(reason)) };
};

const matches = ({ file, code, from, to, mutator }, survivor) =>
  survivor.file === file &&
  (code === undefined || survivor.code.includes(code)) &&
  (from === undefined || survivor.from === from) &&
  (to === undefined || survivor.to === to) &&
  (mutator === undefined || survivor.mutator === mutator);

/** Returns the page of all survivors, by file and by reason. */
const survivorsPage = (survivors, note) =>
  [
    '# Mutants that no test detects',
    'Written by `npm run reliability -- mutation` from the report of Stryker and the reasons in `reasons.mjs`. The score, in',
    '`docs/reliability/tests.md`, is the share of killed and timed out mutants among all that load. It is a lower bound: each folder',
    'of `src` is tested by its own folder in `test` only, without `test/e2e`, the type checker and the leak gate.',
    '',
    ...(note ? [note, ''] : []),
    ...grouped(survivors, ({ file }) => file).flatMap(([file, all]) => [`## ${file}`, '', ...paragraphs(all)]),
  ].join('\n');

const paragraphs = (survivors) =>
  grouped(survivors, ({ why }) => why ?? '**No reason yet.**').flatMap(([why, all]) => [
    why,
    '',
    ...all.map(
      ({ line, from, to, isCovered }) => `- ${line}: ${code(from)} → ${code(to)}${isCovered ? '' : ' (not covered)'}`,
    ),
    '',
  ]);

const grouped = (items, keyOf) => {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return [...groups];
};

const longest = 100;

const code = (text) => {
  const short = text.length > longest ? `${text.slice(0, longest)}…` : text;
  const fence = short.includes('`') ? '``' : '`';
  return text === '' ? 'nothing' : `${fence} ${short} ${fence}`.replace(/^` ([^`].*[^`]) `$/, '`$1`');
};

const undetected = ['Survived', 'NoCoverage'];

/** Returns the mutants of a Stryker report that no test detected, each with the text before and after. */
export const survivorsOf = ({ files }) =>
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
export const withReasons = (survivors, reasons) => {
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
export const survivorsPage = (survivors, note) =>
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

/** Returns the page of all survivors, by file and by reason. */
export const survivorsPage = (figures, total, survivors, note) => {
  const byFile = grouped(survivors, ({ file }) => file);
  return [
    '# Mutants that no test detects',
    'Written by `npm run reliability -- mutation` from the report of Stryker and the reasons in `reasons.mjs`. The score is the share',
    'of killed and timed out mutants among all that load. It is a lower bound: each folder of `src` is tested by its own folder in',
    '`test` only, without `test/e2e`, the type checker and the leak gate.',
    '',
    ...(note ? [note, ''] : []),
    '| Folder | Mutants | Killed | Timeout | Survived | Not covered | Do not load | Score |',
    '| --- | --- | --- | --- | --- | --- | --- | --- |',
    ...Object.entries({ ...figures, Total: total }).map(
      ([name, { mutants, killed, timeout, survived, noCoverage, errors, score }]) =>
        `| ${[name, mutants, killed, timeout, survived, noCoverage, errors, `${score} %`].join(' | ')} |`,
    ),
    ...[...byFile].flatMap(([file, all]) => ['', `## ${file}`, ...paragraphs(all)]),
    '',
  ].join('\n');
};

const paragraphs = (survivors) =>
  [...grouped(survivors, ({ why }) => why ?? '**No reason yet.**')].flatMap(([why, all]) => [
    '',
    why,
    '',
    ...all.map(
      ({ line, from, to, isCovered }) => `- ${line}: ${code(from)} → ${code(to)}${isCovered ? '' : ' (not covered)'}`,
    ),
  ]);

const grouped = (items, keyOf) => {
  const groups = new Map();
  for (const item of items) groups.set(keyOf(item), [...(groups.get(keyOf(item)) ?? []), item]);
  return groups;
};

const longest = 100;

const code = (text) => {
  const short = text.length > longest ? `${text.slice(0, longest)}…` : text;
  const fence = short.includes('`') ? '``' : '`';
  return text === '' ? 'nothing' : `${fence} ${short} ${fence}`.replace(/^` ([^`].*[^`]) `$/, '`$1`');
};

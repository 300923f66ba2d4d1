/** The page of all survivors: by file, then by reason. */
export const survivorsPage = (figures, total, survivors, note) => {
  const byFile = grouped(survivors, ({ file }) => file);
  return [
    '# Mutants that no test notices',
    'Written by `npm run mutation` from the report of Stryker and the reasons in `reasons.mjs`. A score is killed and timed out',
    'mutants among all that load. It is a score from below: each folder of `src` is held against the tests of its own folder',
    'alone, not against `test/e2e`, the type checker or the leak gate.',
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

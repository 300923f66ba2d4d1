import { atLeast, report } from '../lib/report.mjs';

const minScore = 85;
const outcomes = {
  killed: ['Killed'],
  timeout: ['Timeout'],
  survived: ['Survived'],
  'not covered': ['NoCoverage'],
  'do not load': ['RuntimeError', 'CompileError'],
  ignored: ['Ignored'],
};

/**
 * Reports the scores and the survivors.
 *
 * @param groups - the name of a folder or a file, and the files that Stryker reports for it
 */
export const reportMutants = (groups, { command, isResult }) => {
  const all = groups.flatMap(([, files]) => files);
  const rows = [...groups, ...(groups.length > 1 ? [['total', all]] : [])].map(([name, files]) => rowOf(name, files));
  const survivors = all.flatMap(survivorsOf);
  report({
    name: 'mutation',
    command,
    goals: isResult
      ? rows.map((row) => atLeast(`mutants of ${row[0]} that a test detects`, row.at(-1), minScore, '%'))
      : [],
    tables: [
      {
        title: 'Mutants. The score is the share of killed and timed out ones among those that load',
        columns: ['sources', ...Object.keys(outcomes), 'score in %'],
        rows,
      },
      { title: 'Survivors', columns: ['line', 'before', 'after', 'mutator', ''], rows: survivors },
    ],
    facts: { survivors: survivors.length },
    keep: isResult,
  });
};

const rowOf = (name, files) => {
  const mutants = files.flatMap(([, file]) => file.mutants);
  const counts = Object.values(outcomes).map((of) => mutants.filter(({ status }) => of.includes(status)).length);
  const [killed, timeout, survived, notCovered] = counts;
  const valid = killed + timeout + survived + notCovered;
  const score = valid === 0 ? 100 : Math.floor((10_000 * (killed + timeout)) / valid) / 100;
  return [name, ...counts, score];
};

const survivorsOf = ([path, { source, mutants }]) => {
  const lines = source.split('\n');
  const textOf = ({ start, end }) => {
    const part = lines.slice(start.line - 1, end.line).join('\n');
    return part.slice(start.column - 1, part.length - (lines[end.line - 1].length - end.column + 1));
  };
  return mutants
    .filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
    .map(({ location, mutatorName, replacement, status }) => [
      `${path}:${location.start.line}`,
      ...[textOf(location), replacement ?? ''].map((text) => text.replace(/\s+/g, ' ').slice(0, 80)),
      mutatorName,
      status === 'NoCoverage' ? 'not covered' : '',
    ]);
};

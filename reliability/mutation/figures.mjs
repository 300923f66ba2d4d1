/** Counts the mutants of a Stryker report. The score leaves out mutants that don't load (`errors`) and ignored ones. */
export const figuresOf = ({ files }) => {
  const mutants = Object.values(files).flatMap((file) => file.mutants);
  const count = (status) => mutants.filter((mutant) => mutant.status === status).length;
  return scored({
    mutants: mutants.length,
    killed: count('Killed'),
    timeout: count('Timeout'),
    survived: count('Survived'),
    noCoverage: count('NoCoverage'),
    errors: count('RuntimeError') + count('CompileError'),
    ignored: count('Ignored'),
  });
};

/** Adds up the figures of folders. */
export const sum = (all) => {
  const added = (name) => all.reduce((total, figures) => total + figures[name], 0);
  return scored(Object.fromEntries(counted.map((name) => [name, added(name)])));
};

const counted = ['mutants', 'killed', 'timeout', 'survived', 'noCoverage', 'errors', 'ignored'];

const scored = (counts) => {
  const detected = counts.killed + counts.timeout;
  const valid = detected + counts.survived + counts.noCoverage;
  return { ...counts, score: valid === 0 ? 100 : Math.floor((10_000 * detected) / valid) / 100 };
};

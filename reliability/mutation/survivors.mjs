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

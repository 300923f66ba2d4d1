/** The functions to call when the process exits. They share one listener: Node warns of a leak when there are more than ten. */
const acts = new Set<() => void>();

const actAll = (): void => {
  for (const act of [...acts]) act();
};

/**
 * Calls a function when the process exits, with one listener for all functions.
 *
 * @returns a function that removes it again
 */
export const atExit = (act: () => void): (() => void) => {
  if (acts.size === 0) process.on('exit', actAll);
  acts.add(act);
  return () => {
    if (acts.delete(act) && acts.size === 0) process.off('exit', actAll);
  };
};

/** Returns the CPU time that this process has used since `before`, in ns: an earlier result of this function, or its start. */
export const cpuNs = (before = 0) => {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1_000 - before;
};

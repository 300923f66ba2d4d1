// The properties of the machine that figures depend on, without its name.
import { cpus, loadavg, release, totalmem } from 'node:os';

const atStart = loadavg()[0];

/** Returns the CPU, cores, memory, kernel and Node version, and the load average over a minute at the start and now. */
export const machine = () => ({
  cpu: cpus()[0]?.model.trim() ?? 'unknown',
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  platform: `${process.platform} ${process.arch}`,
  kernel: release(),
  node: process.version,
  load: [atStart, loadavg()[0]].map((each) => Number(each.toFixed(2))),
});

/** Returns the same as one line of text. */
export const machineLine = ({ cpu, cores, memoryGiB, node, platform, kernel, load }) =>
  `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${platform} ${kernel}, Node ${node.slice(1)}, load average ${load.join(' to ')}`;

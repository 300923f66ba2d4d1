// The machine that was measured: what a figure depends on, and no name of it.
import { cpus, loadavg, totalmem } from 'node:os';

const atStart = loadavg()[0];

/** CPU, cores, memory, Node, and the load average over a minute when the bench began and now. */
export const machine = () => ({
  cpu: cpus()[0]?.model.trim() ?? 'unknown',
  cores: cpus().length,
  memoryGiB: Math.round(totalmem() / 2 ** 30),
  node: process.version,
  platform: `${process.platform} ${process.arch}`,
  load: [atStart, loadavg()[0]].map((each) => Number(each.toFixed(2))),
});

/** The same in a line. */
export const machineLine = ({ cpu, cores, memoryGiB, node, platform, load }) =>
  `${cpu}, ${cores} cores, ${memoryGiB} GiB, ${platform}, Node ${node.slice(1)}, load average ${load.join(' to ')}`;

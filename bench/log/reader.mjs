// Reads a log that another process writes, and sends it the delay of each frame, in ms.
import { feedLog } from '../../dist/log/index.js';

const COUNT = 400;
const delays = [];
feedLog(process.argv[2])
  .read$()
  .subscribe((record) => {
    if (record.type !== 'frame') return;
    delays.push(Number(process.hrtime.bigint() - BigInt(record.text())) / 1e6);
    if (delays.length === COUNT) process.send(delays, () => process.exit());
  });
process.send('ready');

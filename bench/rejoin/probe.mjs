// A health probe: `node probe.mjs <port>`. It opens a connection for each request.
//
// It sends these IPC messages: `listening` after the first answer, and `report` (healthMs) after any message: the longest time since the last one.
import { get } from 'node:http';

const [port] = process.argv.slice(2).map(Number);
let healthMs = 0;
const ask = () => {
  const begun = performance.now();
  get({ port, host: '127.0.0.1', path: '/health', agent: false }, (response) => {
    response.resume().once('end', () => {
      healthMs = Math.max(healthMs, performance.now() - begun);
      process.send({ type: 'listening' });
      setTimeout(ask, 10);
    });
  });
};
ask();
process.on('message', () => {
  process.send({ type: 'report', healthMs });
  healthMs = 0;
});
process.once('disconnect', () => process.exit());

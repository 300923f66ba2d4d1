// Appends frames numbered `run:0`, `run:1`, … to a log on JetStream: COUNT of them, or until it's killed.
//
//   log-writer.mjs PORT RUN [COUNT]
import { connect } from '@nats-io/transport-node';
import { Subject } from 'rxjs';
import { jetStreamLog } from '../../../src/nats/index.ts';
import { Frame } from '../../../src/protocol/frame.ts';

const [port, run, count = 'Infinity'] = process.argv.slice(2);
const connection = await connect({ servers: `127.0.0.1:${port}`, maxReconnectAttempts: -1, reconnectTimeWait: 50 });
const events = new Subject();
const appended = events.pipe(jetStreamLog(connection, { name: 'market' }).append());
appended.subscribe({
  error: ({ code }) => {
    console.log(code);
    process.exit(1);
  },
  complete: () => process.exit(),
});
events.next({ type: 'opened', at: Date.now(), feed: 'market', connection: 1 });
let n = 0;
const turn = () => {
  // As many frames as a socket delivers at once.
  for (let end = Math.min(Number(count), n + 40); n < end; n += 1) {
    const payload = JSON.stringify({ id: `${run}:${n}`, filler: 'x'.repeat(n % 300) });
    events.next(new Frame('market', Buffer.from(payload), false, Date.now(), 1));
  }
  if (n < Number(count)) setTimeout(turn, 5);
  else events.complete();
};
turn();

// Settles many trades and prints the largest heap. Run it with a heap limit: it crashes if anything grows unbounded.
//
//   node --max-old-space-size=64 test/settle/memory.mjs 1000000 standing
import { Subject } from 'rxjs';
import { Frame } from 'rx-trade-feed';
import { settle } from 'rx-trade-feed/settle';

const [count, kind] = [Number(process.argv[2]), process.argv[3]];
const feed$ = new Subject();
const ledger$ = new Subject();
const states = {};
feed$
  .pipe(
    settle(ledger$, { key: (frame) => frame.text(), withinMs: 1_000, maxTrades: 20_000, maxBytes: 4 * 1024 * 1024 }),
  )
  .subscribe((event) => {
    if (event.type === 'outcome') states[event.state] = (states[event.state] ?? 0) + 1;
  });
const begin = 1_700_000_000_000;
feed$.next({ type: 'opened', at: begin, feed: 'raw', connection: 1 });
ledger$.next({ type: 'watermark', at: begin });
// Each frame is a small part of a large buffer, which it must not keep alive.
let chunk = Buffer.alloc(0);
for (let n = 0; n < count; n += 1) {
  if (n % 500 === 0) chunk = Buffer.alloc(64 * 1024, 'x');
  chunk.write(String(n).padStart(100), (n % 500) * 100);
  const at = begin + Math.floor(n / 10);
  feed$.next(new Frame('raw', chunk.subarray((n % 500) * 100, (n % 500) * 100 + 100), false, at, 1));
  if (kind === 'standing' || n % 1_000 !== 999) continue;
  const confirmed = Array.from({ length: 500 }, (_, k) => ({ key: String(n - 2 * k).padStart(100) }));
  ledger$.next({ type: 'ledger', at, confirmed, depth: 64 });
  ledger$.next({ type: 'watermark', at });
}
const { heapUsed, arrayBuffers } = process.memoryUsage();
console.log(JSON.stringify({ states, heapUsed, arrayBuffers }));
process.exit();

// A user's pipeline, a slow consumer and subscriptions that come and go, at full rate, through every kind of trouble by turns:
// every frame is accounted for, and what the process holds does not grow.
//
//   npm run soak -- [--minutes 2] [--rate 50000] [--reconnect-every 5] [--window 1000]
import { once } from 'node:events';
import { fork } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import {
  endWith,
  filter,
  first,
  fromEvent,
  ignoreElements,
  lastValueFrom,
  map,
  merge,
  Subject,
  take,
  takeUntil,
  timer,
} from 'rxjs';
import { consumers } from './consumers.mjs';
import { leak } from './leak.mjs';
import * as asked from './options.mjs';
import { judgedOf } from './flat.mjs';
import { reportSoak } from './soak-report.mjs';
import { heldNow, remaining, takeSample } from './sampler.mjs';
import { Visitors } from './visitors.mjs';

const ACCOUNTS = 9;
// A run on a busy machine takes fewer samples a second. It goes on until there are enough to judge, at most four times as long.
const ENOUGH_SAMPLES = 24;
const LONGEST = 4;
const kinds = ['killed', 'reset', 'expired', 'shutdown', 'credentials'];

const { seconds, rate, everyS, outageMs } = asked;
const child = fork(new URL('./service.mjs', import.meta.url), [JSON.stringify({ rate, accounts: ACCOUNTS, outageMs })]);
process.once('exit', () => child.kill('SIGKILL'));
child.once('exit', (code) => {
  if (code !== 0) throw new Error(`The service ended with ${code}.`);
});
const said$ = fromEvent(child, 'message').pipe(map(([message]) => message ?? {}));
const { baseUrl, keys } = (await once(child, 'message'))[0];
// Both are made on first use, and would look like something that is left behind.
for (const stream of [process.stdout, process.stderr]) stream.write('');
const held = heldNow();
const optionsOf = (account) => ({
  baseUrl,
  apiKey: keys[account],
  backoff: { initialDelayMs: 100, maxDelayMs: 400 },
});

const finished = new Subject();
const run = consumers({
  options: optionsOf(0),
  windowMs: asked.windowMs,
  capacity: (rate ?? 50_000) / 10,
  until$: finished,
  onTaken: (number) => child.send({ type: 'taken', number }),
});
const { truth } = run;
const visitors = new Visitors((account) => optionsOf(account + 1), ACCOUNTS - 1);
const samples = [];
const troubles = { started: 0, isOn: false };

const startedAt = performance.now();
let [sampledAt, swappedAt, toldAt] = [-1, -1, 0];
const sampling = run.windowed$.subscribe(() => {
  // A process that was held up lets many windows go at once, and a sample costs time.
  if (performance.now() < sampledAt + asked.windowMs / 2) return;
  leak(asked.leaks);
  const sample = takeSample(startedAt, truth.isOpen && visitors.areOpen && !troubles.isOn);
  samples.push(sample);
  sampledAt = performance.now();
  // Behind a sample, so that a visitor is open by the next one.
  if (sample.atS >= swappedAt + 0.9) {
    visitors.swap();
    swappedAt = sample.atS;
  }
  if (sample.atS < toldAt + 5) return;
  toldAt = sample.atS;
  console.log(progressOf(sample));
});
const trouble = timer(everyS * 1_000, everyS * 1_000)
  .pipe(filter((n) => !troubles.isOn && (n + 1.5) * everyS < seconds))
  .subscribe(() => {
    troubles.isOn = true;
    child.send({ type: 'trouble', kind: kinds[troubles.started % kinds.length] });
    troubles.started += 1;
  });
const calm = said$.pipe(filter(({ type }) => type === 'trouble-over')).subscribe(() => (troubles.isOn = false));

const cpuBefore = process.cpuUsage();
const done = lastValueFrom(merge(...run.all).pipe(ignoreElements(), endWith(undefined)));
run.opened.then(() => child.send({ type: 'start' }));

// At the end: what was sent last must have come, then the feed is left.
const isOver$ = timer(seconds * 1_000, 100).pipe(
  takeUntil(timer(LONGEST * seconds * 1_000)),
  first(() => judgedOf(samples).length >= ENOUGH_SAMPLES, undefined),
);
await Promise.race([lastValueFrom(isOver$), done]);
for (const each of [sampling, trouble]) each.unsubscribe();
const answer = lastValueFrom(
  said$.pipe(
    filter(({ type }) => type === 'finished'),
    take(1),
  ),
);
child.send({ type: 'finish' });
const { sent } = await answer;
await run.reached(sent);
visitors.close();
finished.next();
await done;
calm.unsubscribe();
const cpu = process.cpuUsage(cpuBefore);
// Sockets take some turns to close.
for (let turn = 0; turn < 100 && remaining(held) !== ''; turn += 1) await delay(30);
const leftBehind = remaining(held);
child.disconnect();
await once(child, 'exit');

await reportSoak({
  ...run,
  leftBehind,
  visitors,
  samples,
  sent,
  troubles: troubles.started,
  cpu,
  elapsedS: samples.at(-1)?.atS ?? 0,
});
// What is left behind keeps no process alive that has said so.
process.exit();

function progressOf({ atS, heap, rss, handles, fds }) {
  return (
    `${atS.toFixed(0).padStart(4)} s  ${truth.ledger.received} frames  heap ${heap.toFixed(1)} MB  rss ${rss.toFixed(0)} MB  ` +
    `${handles} handles  ${fds ?? '–'} fds  ${truth.ledger.gaps} gaps  ${visitors.came} came and went`
  );
}

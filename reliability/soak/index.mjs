// Runs a pipeline of operators, a slow consumer and short subscriptions at full rate, while the service causes one fault after
// another. Every frame must be accounted for, and the memory and handles of the process mustn't grow.
//
//   npm run reliability -- soak [--minutes 2] [--rate 50000] [--reconnect-every 5] [--window 1000]
import { setTimeout as delay } from 'node:timers/promises';
import { endWith, filter, first, ignoreElements, lastValueFrom, merge, Subject, takeUntil, timer } from 'rxjs';
import { startChild } from '../../bench/support/child.mjs';
import { consumers } from './consumers.mjs';
import { createChurn } from './churn.mjs';
import { validSamples } from './growth.mjs';
import * as settings from './options.mjs';
import { reportSoak } from './soak-report.mjs';
import { heldNow, remaining, takeSample } from './sampler.mjs';

const ACCOUNTS = 9;
// A busy machine takes fewer samples a second. The run then continues until there are enough, up to this factor.
const ENOUGH_SAMPLES = 24;
const LONGEST = 20;
/** How many samples are taken between two swaps of a short subscription: on a busy machine the new one opens late, and until then no sample counts. */
const STABLE_BETWEEN_SWAPS = 3;
const kinds = ['killed', 'reset', 'expired', 'shutdown', 'credentials'];

const { seconds, rate, everyS, outageMs } = settings;
const ofService = JSON.stringify({ rate, accounts: ACCOUNTS, outageMs });
const child = startChild(new URL('service.mjs', import.meta.url), [ofService]);
void child.exited.then(([code]) => {
  if (code !== 0) throw new Error(`The service ended with ${code}.`);
});
const { baseUrl, keys } = await child.next('ready');
// Node creates both streams on first use. Created later, they would look like a leak.
for (const stream of [process.stdout, process.stderr]) stream.write('');
const held = heldNow();
const backoff = { initialDelayMs: 100, maxDelayMs: 400 };
const optionsOf = (account) => ({ baseUrl, apiKey: keys[account], backoff });

const finished = new Subject();
const run = consumers({
  options: optionsOf(0),
  windowMs: settings.windowMs,
  capacity: (rate ?? 50_000) / 10,
  until$: finished,
  onTaken: (number) => child.send({ type: 'taken', number }),
});
const { expected } = run;
const churn = createChurn((account) => optionsOf(account + 1), ACCOUNTS - 1);
const samples = [];
const faults = { started: 0, isOn: false };

const startedAt = performance.now();
let [sampledAt, swappedAt, printedAt] = [-1, -1, 0];
let stableSinceSwap = STABLE_BETWEEN_SWAPS;
const sampling = run.windowed$.subscribe(() => {
  // A process that was blocked emits many windows at once, and a sample costs time.
  if (performance.now() < sampledAt + settings.windowMs / 2) return;
  settings.leak();
  const sample = takeSample(startedAt, expected.isOpen && churn.areOpen() && !faults.isOn);
  samples.push(sample);
  sampledAt = performance.now();
  // Right after a sample, so that the new subscription is open before the next sample.
  if (sample.isStable) stableSinceSwap += 1;
  if (sample.atS >= swappedAt + 0.9 && stableSinceSwap >= STABLE_BETWEEN_SWAPS) {
    churn.swap();
    [swappedAt, stableSinceSwap] = [sample.atS, 0];
  }
  if (sample.atS < printedAt + 5) return;
  printedAt = sample.atS;
  console.log(progressOf(sample));
});
const faulting = timer(everyS * 1_000, everyS * 1_000)
  .pipe(filter((n) => !faults.isOn && (n + 1.5) * everyS < seconds))
  .subscribe(() => {
    faults.isOn = true;
    child.send({ type: 'fault', kind: kinds[faults.started % kinds.length] });
    faults.started += 1;
  });
child.on('fault-over', () => (faults.isOn = false));

const cpuBefore = process.cpuUsage();
const done = lastValueFrom(merge(...run.all).pipe(ignoreElements(), endWith(undefined)));

// At the end: wait for the last frame that was sent, then end the feed.
const isOver$ = timer(seconds * 1_000, 100).pipe(
  takeUntil(timer(LONGEST * seconds * 1_000)),
  first(() => validSamples(samples).length >= ENOUGH_SAMPLES, undefined),
);
await Promise.race([lastValueFrom(isOver$), done]);
for (const each of [sampling, faulting]) each.unsubscribe();
child.send({ type: 'finish' });
const { sent } = await child.next('finished');
while (expected.account.last < sent) await delay(10);
churn.close();
finished.next();
await done;
const cpu = process.cpuUsage(cpuBefore);
// A closing handshake takes as long as the service needs to answer, at most a second. What leaked on purpose stays.
const turns = settings.leaking.length > 0 ? 50 : 1_000;
for (let turn = 0; turn < turns && remaining(held) !== ''; turn += 1) await delay(30);
const leaked = remaining(held);
await child.stop();

const elapsedS = samples.at(-1)?.atS ?? 0;
reportSoak({ ...run, leaked, churn, samples, sent, faults: faults.started, cpu, elapsedS });
// A leaked handle would keep the process alive.
process.exit();

function progressOf({ atS, heap, rss, handles }) {
  const { received, gaps } = expected.account;
  return `${atS.toFixed(0)} s: ${received} frames, heap ${heap.toFixed(1)} MB, rss ${rss.toFixed(0)} MB, ${handles} handles, ${gaps} gaps`;
}

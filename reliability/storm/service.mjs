// The service of the storm, in a separate process: the same accounts after a restart, some frames, and little capacity at first.
import { interval } from 'rxjs';
import { startService } from '../lib/service.mjs';

const FRAME_EVERY_MS = 250;
const { port, accounts, capacity, roomAfterMs, limits } = JSON.parse(process.argv[2]);
const events = [];
// Some time after the first 429 there is room for all clients. Until then half of the attempts fail.
let room;
const { service, keys } = await startService({
  port,
  accounts,
  limits: { shutdownTimeoutMs: 10_000, ...limits, ...(capacity !== undefined && { capacity }) },
  onEvent: ({ type, at, account, status, code, retryAfterSeconds, rule }) => {
    events.push([type, at, account, status ?? 0, String(code ?? rule ?? ''), retryAfterSeconds ?? 0]);
    if (status === 429) room ??= setTimeout(() => service.setCapacity(Infinity), roomAfterMs);
  },
});
const upAt = Date.now();
let pushed = 0;
const pushing = interval(FRAME_EVERY_MS).subscribe(() => service.push('market', `{"n":${(pushed += 1)}}`));

const end = async () => {
  clearTimeout(room);
  pushing.unsubscribe();
  await service.shutdown();
};
process.once('message', async () => {
  await end();
  process.send({ type: 'events', events }, () => process.disconnect());
});
process.once('disconnect', () => void end());
process.send({ type: 'ready', baseUrl: service.baseUrl, keys, upAt });

// The service of the run, in a separate process: sends frames at a steady rate to each account.
import { startTradeFeedService } from 'rx-trade-feed/testing';

const { rate, accounts } = JSON.parse(process.argv[2] ?? '{}');
const service = await startTradeFeedService({
  sources: {},
  limits: { ticketsPerWindow: Infinity, backlogBytes: 2 ** 28 },
});
const keys = Array.from({ length: accounts }, () => service.createAccount({ plan: 'developer' }).createApiKey());
const payload = (n) => `{"n":${n},"text":"${'x'.repeat(180)}"}`;

let sent = 0;
let startedAt;
const pump = setInterval(() => {
  startedAt ??= performance.now();
  const due = Math.floor(((performance.now() - startedAt) / 1_000) * rate);
  for (; sent < due; sent += 1) service.push('market', payload(sent));
}, 2);

process.on('disconnect', () => process.exit());
process.on('message', async () => {
  clearInterval(pump);
  await service.shutdown();
  process.exit();
});
process.send?.({ baseUrl: service.baseUrl, keys });

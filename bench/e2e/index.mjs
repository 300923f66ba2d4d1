// End to end: a sender in a separate process floods each receiver over loopback, with and without TLS.
import { goal, interleaved, median, pairedRatio, report, sample } from '../lib/bench.mjs';
import { missingPeers, peers } from '../peers/index.mjs';
import { sizeLabel } from '../support/payloads.mjs';
import { checkUnits, contendersAt, idOf, receivingTables, sizeChart, nodeArgs } from '../support/receiving.mjs';
import { startSender } from '../support/start.mjs';

const file = new URL('sample.mjs', import.meta.url);
const small = [200, 1024];
const sizes = [...small, 4096, 65_536];
const senders = { plain: await startSender('flood-sender'), tls: await startSender('flood-sender', ['--tls']) };

const contenders = contendersAt({ small, large: [4096, 65_536], few: ['raw', 'ws', 'ours'], withBytes: false });
const run =
  (way) =>
  ({ peer, size, mode }) => {
    const { port, caFile } = senders[way];
    const origin = `${way === 'tls' ? 'wss' : 'ws'}://127.0.0.1:${port}`;
    const env = caFile ? { NODE_EXTRA_CA_CERTS: caFile } : {};
    return sample(file, [peer, size, mode, origin], { nodeArgs, env });
  };
const all = await interleaved({
  title: 'e2e',
  contenders: Object.fromEntries(
    Object.keys(senders).flatMap((way) => contenders.map((each) => [`${way} ${idOf(each)}`, () => run(way)(each)])),
  ),
});
await Promise.all(Object.values(senders).map(({ stop }) => stop()));

const samplesOf = (way) => Object.fromEntries(contenders.map((each) => [idOf(each), all[`${way} ${idOf(each)}`]]));
const [plain, tls] = [samplesOf('plain'), samplesOf('tls')];
checkUnits(all);

const at = (samples, peer, size) => samples[idOf({ peer, size, mode: 'text' })];
const isPeer = (name) => !name.startsWith('ours') && peers[name].modes.includes('text');
const costOf = (samples, peer, size) => median(at(samples, peer, size).map(({ ns }) => ns));
const fastest = (samples, size) =>
  Object.keys(peers)
    .filter((name) => isPeer(name) && at(samples, name, size))
    .reduce((best, name) => (costOf(samples, name, size) < costOf(samples, best, size) ? name : best));
const against = (samples, other, size) => pairedRatio(at(samples, other, size), at(samples, 'ours', size), 'ns');

const tlsGoals = Object.entries({ 200: 2.5, 1024: 1.3 }).map(([text, atLeast]) => {
  const size = Number(text);
  const best = fastest(tls, size);
  const what = `the fastest peer (${peers[best].title}) over ours, TLS, ${sizeLabel(size)}`;
  return goal({ id: `e2e/tls/fastest/${size}`, what, ratio: against(tls, best, size), atLeast });
});
const neverBelow = Object.entries({ TLS: tls, plain }).flatMap(([way, samples]) =>
  sizes.map((size) =>
    goal({
      id: `e2e/${way.toLowerCase()}/ws/${size}`,
      what: `ws with toString() over ours, ${way}, ${sizeLabel(size)}`,
      ratio: against(samples, 'ws', size),
      atLeast: 1,
    }),
  ),
);

const named = (way, samples) =>
  receivingTables(samples, sizes).map(({ title, ...rest }) => ({ title: `${title}, ${way}`, ...rest }));
const missing = missingPeers();
await report({
  bench: 'e2e',
  command: 'npm run bench -- e2e',
  goals: [...tlsGoals, ...neverBelow],
  tables: [...named('over TLS', tls), ...named('plain', plain)],
  charts: small.map((size) =>
    sizeChart(tls, size, {
      id: `e2e-tls-${size}`,
      title: `Receiving a frame of ${sizeLabel(size)} over TLS, end to end`,
    }),
  ),
  facts: missing.length > 0 ? { 'not on this Node': missing.join(', ') } : {},
});

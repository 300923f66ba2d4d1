import { expect, it } from '@jest/globals';
import type { DetailedPeerCertificate } from 'node:tls';
import { MessageChannel } from 'node:worker_threads';
import { resolveTicketOptions } from '../../src/options.js';
import { workerEnvironment } from '../../src/worker/boot-worker.js';
import { openCallChannel } from '../../src/worker/call-channel.js';
import { createUserFunctions } from '../../src/worker/inside/user-functions.js';
import { networkDefaults, setNetworkDefaults } from '../../src/worker/network-defaults.js';
import { restoreCertificate } from '../../src/worker/restore-certificate.js';
import { storedValues } from '../../src/worker/thrown-values.js';
import { callApiKey, callUser } from '../../src/worker/user-calls.js';

const settings = resolveTicketOptions({ baseUrl: 'https://feed.example.com', apiKey: 'planted-key' });

it('returns plain data, whatever a function of the user returns', async () => {
  const values = storedValues();
  const odd = { ...settings, classify: () => ({}) as never, apiKey: () => 5 as never };
  const failure = { kind: 'stored', id: 0, message: undefined } as const;
  expect(callUser({ name: 'classify', failure, verdict: 'stop' }, odd, values)).toEqual({ value: undefined });
  expect(callUser({ name: 'classify', failure, verdict: 'stop' }, settings, values)).toEqual({ value: undefined });
  expect(callUser({ name: 'checkServerIdentity', host: 'here', certificate: {} }, settings, values)).toEqual({
    value: undefined,
  });
  expect(await callApiKey(odd, values)).toEqual({ value: undefined });
});

it('answers a call, also after the subscription has ended', async () => {
  const subscriber = { closed: false };
  const { workerEnd, close } = openCallChannel(() => ({ value: 0.5 }), subscriber);
  const ask = async (): Promise<unknown> => {
    const answer = new Promise((resolve) => workerEnd.calls.once('message', resolve));
    workerEnd.calls.postMessage({ name: 'random' });
    return answer;
  };
  expect(await ask()).toEqual({ value: 0.5 });
  expect(Atomics.load(workerEnd.answered, 0)).toBe(1);
  subscriber.closed = true;
  expect(await ask()).toBeUndefined();
  close();
});

it('throws in the worker after the subscription has ended', () => {
  const { port1, port2 } = new MessageChannel();
  const answered = new Int32Array(new SharedArrayBuffer(4));
  // Otherwise this thread would be blocked forever.
  port2.postMessage = () => void Atomics.store(answered, 0, 1);
  const functions = createUserFunctions({ calls: port2, answered }, () => undefined);
  expect(() => functions.random()).toThrow('The subscription has ended.');
  functions.receiveKey(5, { value: 'no call waits for this key' });
  port1.close();
});

it('restores the Buffers of a certificate and of its issuer, which may be the certificate itself', () => {
  const cloned = { raw: new Uint8Array([1, 2]), subject: { CN: 'here' }, issuerCertificate: {} as object };
  cloned.issuerCertificate = cloned;
  const certificate = restoreCertificate(cloned) as DetailedPeerCertificate;
  expect(Buffer.isBuffer(certificate.raw) && certificate.raw).toEqual(Buffer.from([1, 2]));
  expect(certificate.issuerCertificate).toBe(certificate);
});

it('copies the environment for a worker without the key and flags', () => {
  const environment = { ...process.env };
  Object.assign(process.env, { TRADE_FEED_API_KEY: 'planted-key', NODE_OPTIONS: '--no-warnings', PLAIN: 'yes' });
  try {
    const own = workerEnvironment();
    expect(own).toMatchObject({ PLAIN: 'yes' });
    expect(Object.keys(own)).not.toEqual(expect.arrayContaining(['TRADE_FEED_API_KEY']));
    expect(own).not.toHaveProperty('NODE_OPTIONS');
  } finally {
    for (const name of ['TRADE_FEED_API_KEY', 'NODE_OPTIONS', 'PLAIN']) Reflect.deleteProperty(process.env, name);
    Object.assign(process.env, environment);
  }
});

it('copies the network defaults of this thread', () => {
  const defaults = networkDefaults();
  try {
    const others = {
      order: 'ipv4first',
      autoSelectFamily: !defaults.autoSelectFamily,
      attemptTimeoutMs: 1_234,
    } as const;
    setNetworkDefaults(others);
    expect(networkDefaults()).toEqual(others);
  } finally {
    setNetworkDefaults(defaults);
  }
});

import { describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { Socket } from 'node:net';
import { type PeerCertificate, TLSSocket } from 'node:tls';
import type { TlsOptions } from '../../src/feed/options.js';
import {
  type Connect,
  connectSocket,
  isReady,
  originOf,
  resumingConnect,
  whenReady,
  withIdentityCheck,
} from '../../src/transport/connect.js';
import { certificateFor } from '../support/certificate.js';
import { closed } from '../support/feed.js';
import { portOf, startGate } from '../support/gate.js';
import { waitFor } from '../support/wait-for.js';
import { startWire, type Wire } from '../support/wire.js';

it.each([
  ['https://feed.example.com/v1', 'wss://FEED.example.com:443/ws?x=1', true],
  ['http://localhost/', 'ws://localhost:80', true],
  ['https://[::1]:8443/', 'wss://[::1]:8443/ws', true],
  ['wss://a.example/', 'wss://a.example:444/', false],
  ['wss://a.example:80/', 'ws://a.example/', false],
])('originOf returns the same for %s and %s: %s', (a, b, isSame) => {
  expect(originOf(new URL(a)) === originOf(new URL(b))).toBe(isSame);
});

describe('connectSocket', () => {
  it('connects to an IPv6 address, although URLs put it in brackets', async () => {
    // Nothing listens there, and the machine may not have IPv6: the error names the address.
    const [error] = (await once(connectSocket(new URL('ws://[::1]:1/')), 'error')) as [Error];
    expect(error).toMatchObject({ address: '::1', port: 1 });
  });

  it.each([
    ['ws:', false],
    ['wss:', true],
  ])('is ready when it can be written to: %s', async (_, isTls) => {
    const tls = await certificateFor();
    await using wire = await startWire(isTls ? { tls } : {});
    const socket = connectSocket(new URL(wire.wssUrl), { ca: tls.cert });
    expect(isReady(socket)).toBe(false);
    await new Promise<void>((resolve) => whenReady(socket, resolve));
    expect(isReady(socket)).toBe(true);
    // Even if the socket was ready before the call.
    await new Promise<void>((resolve) => whenReady(socket, resolve));
    socket.destroy();
  });

  it.each(['ws:', 'wss:'])('sends small messages such as a pong or an upgrade without delay: %s', (protocol) => {
    const atOnce = jest.spyOn(Socket.prototype, 'setNoDelay');
    const socket = connectSocket(new URL(`${protocol}//127.0.0.1:1`));
    socket.on('error', () => undefined).destroy();
    expect(atOnce.mock.contexts).toContain(socket);
    atOnce.mockRestore();
  });

  it("isn't ready while connected by TCP but still in the TLS handshake", async () => {
    await using gate = await startGate(['silence']);
    const socket = connectSocket(new URL(`wss://127.0.0.1:${gate.port}`));
    await once(socket, 'connect');
    expect(isReady(socket)).toBe(false);
    socket.destroy();
  });

  it.each<[string, string | undefined, string | false]>([
    ['127.0.0.1', undefined, false],
    ['localhost', undefined, 'localhost'],
    ['localhost', 'feed.example', 'feed.example'],
  ])('sends %s as the server name, with the servername %s, as %s', async (host, servername, named) => {
    const tls = await certificateFor(servername);
    await using wire = await startWire({ tls });
    const url = new URL(`wss://${host}:${portOf(wire.wssUrl)}`);
    const socket = connectSocket(url, { ca: tls.cert, ...(servername && { servername }) });
    await once(socket, 'secureConnect');
    await waitFor(() => wire.open.size > 0);
    expect([...wire.open]).toMatchObject([{ servername: named }]);
    socket.destroy();
  });
});

const tls = await certificateFor();
const other = await certificateFor();

/** Connects, waits for a new session if there's one, and returns whether it resumed an earlier one. */
const resumes = async (connect: Connect, url: string): Promise<boolean> => {
  const socket = connect(new URL(url));
  if (!(socket instanceof TLSSocket)) throw new Error('There are no sessions without TLS.');
  const session = once(socket, 'session');
  await once(socket, 'secureConnect');
  const isReused = socket.isSessionReused();
  if (!isReused) await session;
  // It takes another turn to store the session.
  await new Promise((resolve) => setImmediate(resolve));
  socket.destroy();
  await closed(socket);
  return isReused;
};

const errorOf = async (connect: Connect, url: string): Promise<unknown> => {
  const [error] = (await once(connect(new URL(url)), 'error')) as unknown[];
  return error;
};

describe('resumingConnect', () => {
  it.each(['TLSv1.2', 'TLSv1.3'])(
    'resumes the last session with an origin, for any path and scheme: %s',
    async (maxVersion) => {
      await using wire = await startWire({ tls: { ...tls, maxVersion } as typeof tls });
      const connect = resumingConnect({ ca: tls.cert });
      expect(await resumes(connect, wire.wssUrl)).toBe(false);
      expect(await resumes(connect, wire.wssUrl)).toBe(true);
      expect(await resumes(connect, `${wire.baseUrl}/v1/wss/tickets`)).toBe(true);
    },
  );

  it('resumes a session whose connection broke after the TLS handshake', async () => {
    // In TLS 1.3, each connection would create a new session.
    await using wire = await startWire({ tls: { ...tls, maxVersion: 'TLSv1.2' } as typeof tls });
    const connect = resumingConnect({ ca: tls.cert });
    await resumes(connect, wire.wssUrl);
    const socket = connect(new URL(wire.wssUrl));
    await once(socket, 'secureConnect');
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined).destroy(new Error('broken'));
    await gone;
    expect(await resumes(connect, wire.wssUrl)).toBe(true);
  });

  it('resumes no session if the user set checkServerIdentity, and calls it for each connection', async () => {
    await using wire = await startWire({ tls });
    let calls = 0;
    const options: TlsOptions = { ca: tls.cert, checkServerIdentity: () => void (calls += 1) };
    const connect = resumingConnect(options);
    expect(await resumes(connect, wire.wssUrl)).toBe(false);
    expect(await resumes(connect, wire.wssUrl)).toBe(false);
    expect(calls).toBe(2);
  });

  it('detects an untrusted certificate even if it has a session with that origin', async () => {
    await using first: Wire = await startWire({ tls });
    await using second: Wire = await startWire({ tls: other });
    await using gate = await startGate([{ port: portOf(first.wssUrl) }, { port: portOf(second.wssUrl) }]);
    const connect = resumingConnect({ ca: tls.cert });
    const url = `wss://127.0.0.1:${gate.port}`;
    await resumes(connect, url);
    await expect(errorOf(connect, url)).resolves.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
    await expect(errorOf(connect, url)).resolves.toMatchObject({ code: 'DEPTH_ZERO_SELF_SIGNED_CERT' });
  });

  it('forgets the session after a connection was refused or failed', async () => {
    const named = await certificateFor('elsewhere.example');
    await using elsewhere = await startWire({ tls: named });
    await using wire = await startWire({ tls });
    const [bad, good] = [{ port: portOf(elsewhere.wssUrl) }, { port: portOf(wire.wssUrl) }];
    await using gate = await startGate([bad, good, 'reset', good]);
    const connect = resumingConnect({ ca: [tls.cert, named.cert] });
    const url = `wss://127.0.0.1:${gate.port}`;
    await expect(errorOf(connect, url)).resolves.toMatchObject({ code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    expect(await resumes(connect, url)).toBe(false);
    await errorOf(connect, url);
    expect(await resumes(connect, url)).toBe(false);
  });

  it('resumes no session of another origin, also of the same service, and stores those of the last few', async () => {
    await using wire = await startWire({ tls });
    const gates = await Promise.all(Array.from({ length: 5 }, () => startGate([{ port: portOf(wire.wssUrl) }])));
    const connect = resumingConnect({ ca: tls.cert });
    const resumed = (gate: (typeof gates)[number]) => resumes(connect, `wss://127.0.0.1:${gate.port}`);
    for (const gate of gates) expect(await resumed(gate)).toBe(false);
    for (const gate of gates.slice(1)) expect(await resumed(gate)).toBe(true);
    expect(await resumes(connect, `wss://localhost:${gates[4]?.port}`)).toBe(false);
    expect(await resumed(gates[0] as (typeof gates)[number])).toBe(false);
    for (const gate of gates) await gate[Symbol.asyncDispose]();
  });
});

it.each<[string, () => unknown, string]>([
  ['a text', () => 'not this one', 'not this one'],
  ['a promise', () => Promise.resolve(), '[object Promise]'],
  ['a symbol', () => Symbol('no'), 'Symbol(no)'],
  ['an object without a text', () => Object.create(null) as unknown, 'it gave no reason'],
  [
    'an error with an object as its message',
    () => Object.assign(new Error(), { message: { toString: () => 'mine' } }),
    'mine',
  ],
])('refuses a certificate if checkServerIdentity returns %s', (_what, check, message) => {
  const { checkServerIdentity } = withIdentityCheck({ checkServerIdentity: check as () => undefined });
  expect(checkServerIdentity?.('here', {} as PeerCertificate)).toMatchObject({
    message,
    code: 'ERR_TLS_CERT_ALTNAME_INVALID',
  });
});

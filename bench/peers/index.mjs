// The peers, each with its best options; `ours` alone, with operators, and over the plain path.
//
// A peer opens `origin + path` and calls `take` with the length of each payload: of the string (`mode` is `text`), of the bytes
// (`bytes`), or of the string of a frame that it held before (`held`). Only bare sockets don't parse frames: they call `takeBytes`.
// Each loads its packages when it is opened, so that a process has only those of one peer.
import { createRequire } from 'node:module';
import { installedBun } from '../../scripts/install.mjs';
import { hold } from '../support/hold.mjs';

/** Opens a socket with the interface of a browser. `socketTo` returns it. */
const listening =
  (socketTo) =>
  async ({ origin, path, take }) => {
    const socket = await socketTo(origin + path);
    socket.addEventListener('message', ({ data }) => take(data.length));
  };
const builtIn = listening((url) => new WebSocket(url));

/** Returns `ws` with the best options for libraries that use it: no compression, Buffers for binary frames. */
const plainWs = async () => {
  const { WebSocket } = await import('ws');
  return class extends WebSocket {
    constructor(address, protocols) {
      super(address, protocols, { perMessageDeflate: false });
      this.binaryType = 'nodebuffer';
    }
  };
};

const wsReaders = {
  text: (take) => (data) => take(data.toString().length),
  bytes: (take) => (data) => take(data.length),
  held: (take, size) => hold(size, wsReaders.text(take)),
};
const ws = async ({ origin, path, mode, size, take }) => {
  const { WebSocket } = await import('ws');
  new WebSocket(origin + path, { perMessageDeflate: false }).on('message', wsReaders[mode](take, size));
};

/** `ws` in a process that has loaded our packages, as ours has: the same live objects for the garbage collector. */
const wsLoaded = async (to) => {
  for (const module of ['io-ts', 'undici', '../../dist/index.js']) await import(module);
  return ws(to);
};

/** With a deserializer that doesn't parse JSON. */
const rxjs = async ({ origin, path, take }) => {
  const { webSocket } = await import('rxjs/webSocket');
  webSocket({ url: origin + path, WebSocketCtor: await plainWs(), deserializer: ({ data }) => data }).subscribe(
    (text) => take(text.length),
  );
};

/** It always parses the messages of its protocol. */
const graphql = async ({ origin, path, take, size }) => {
  const { createClient } = await import('graphql-ws');
  const settings = { url: origin + path, webSocketImpl: await plainWs(), generateID: () => '1', lazy: true };
  createClient(settings).subscribe(
    { query: 'subscription { feed }' },
    { next: ({ data }) => data.feed && take(size), error: console.error, complete: () => {} },
  );
};

/** JSON with one publication for each frame, which it parses. */
const centrifuge = async ({ origin, path, take, size }) => {
  const { Centrifuge } = await import('centrifuge');
  const client = new Centrifuge(origin + path, { websocket: await plainWs() });
  client.on('publication', ({ data }) => data && take(size)).on('error', console.error);
  client.connect();
};

const raw = (options) => async (to) => (await import('./raw.mjs')).open({ ...to, ...options });
const ours = (title, options, modes = ['text', 'bytes']) => ({
  title,
  open: async (to) => (await import('./ours.mjs')).open({ ...to, ...options }),
  modes,
});
const asText = (title, open, more) => ({ title, open, modes: ['text'], ...more });

/**
 * Every peer by name: the function that opens it, the modes that it has, the protocol of the sender, and the program that runs it, if it is
 * not this Node. A bare socket has no text, and a control explains a figure.
 */
export const peers = {
  raw: { title: 'bare socket', open: raw({}), modes: ['bytes'], isBare: true },
  onread: { title: 'bare socket with onread', open: raw({ isInPlace: true }), modes: ['bytes'], isBare: true },
  ws: { title: 'ws', open: ws, modes: ['text', 'bytes', 'held'] },
  wsLoaded: { title: 'ws, with our packages loaded', open: wsLoaded, modes: ['bytes', 'held'], isControl: true },
  rxjs: asText('rxjs/webSocket over ws', rxjs),
  undici: asText(
    'undici WebSocket',
    listening(async (url) => new (await import('undici')).WebSocket(url)),
  ),
  global: asText('global WebSocket', builtIn, {
    isHere: () => 'WebSocket' in globalThis,
    whereElse: 'Node 22 and later have it',
  }),
  bun: asText('Bun (its own WebSocket)', builtIn, {
    program: installedBun(),
    isHere: () => installedBun() !== undefined,
    whereElse: '`node scripts/install.mjs bun` installs it',
  }),
  partysocket: asText(
    'partysocket over ws',
    listening(async (url) => {
      const { default: ReconnectingWebSocket } = await import('partysocket/ws');
      return new ReconnectingWebSocket(url, [], { WebSocket: await plainWs() });
    }),
  ),
  reconnecting: asText(
    'reconnecting-websocket over ws',
    listening(async (url) => {
      const ReconnectingWebSocket = createRequire(import.meta.url)('reconnecting-websocket');
      return new ReconnectingWebSocket(url, [], { WebSocket: await plainWs() });
    }),
  ),
  graphql: asText('graphql-ws over ws (own protocol)', graphql, { protocol: 'graphql' }),
  centrifuge: asText('centrifuge over ws (own protocol)', centrifuge, { protocol: 'centrifuge' }),
  ours: ours('ours', {}, ['text', 'bytes', 'held']),
  ours3: ours('ours, 3 operators', { operators: 3 }),
  ours6: ours('ours, 6 operators', { operators: 6 }),
  oursPlain: ours('ours, plain path', { isPlain: true }),
};

/** The peers that show what's possible here. */
export const installed = Object.keys(peers).filter(
  (peer) => !peers[peer].isControl && (peers[peer].isHere?.() ?? true),
);

const missing = Object.values(peers).filter(({ isHere }) => isHere && !isHere());
/** The peers that can't be measured here, as facts of a report. */
export const missingPeers = missing.length > 0 && {
  'not measured': missing.map(({ title, whereElse }) => `${title} (${whereElse})`).join(', '),
};

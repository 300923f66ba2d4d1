// The peers, each with its best options; `ours` alone, with operators, and over the plain path.
//
// A peer opens `origin + path` and calls `take` with the length of each payload: of the string (`mode` is `text`), of the bytes
// (`bytes`), or of the string of a frame that it held before (`held`). Only bare sockets don't parse frames: they call `takeBytes`.
import { installedBun } from '../../scripts/install.mjs';

const ours = (title, args) => ({ title, file: './ours.mjs', modes: ['text', 'bytes'], args });

/**
 * Every peer by name: the file that receives, the modes that it has, the protocol of the sender, and the program that runs it, if it is
 * not this Node.
 */
export const peers = {
  raw: { title: 'bare socket', file: './raw.mjs', modes: ['bytes'] },
  onread: { title: 'bare socket with onread', file: './raw.mjs', modes: ['bytes'], args: { isInPlace: true } },
  ws: { title: 'ws', file: './ws.mjs', modes: ['text', 'bytes', 'held'] },
  wsLoaded: {
    title: 'ws, with our packages loaded',
    file: './ws-loaded.mjs',
    modes: ['bytes', 'held'],
    isControl: true,
  },
  rxjs: { title: 'rxjs/webSocket over ws', file: './rxjs.mjs', modes: ['text'] },
  undici: { title: 'undici WebSocket', file: './undici.mjs', modes: ['text'] },
  global: {
    title: 'global WebSocket',
    file: './global.mjs',
    modes: ['text'],
    isHere: () => 'WebSocket' in globalThis,
    whereElse: 'Node 22 and later have it',
  },
  bun: {
    title: 'Bun (its own WebSocket)',
    file: './global.mjs',
    modes: ['text'],
    program: installedBun(),
    isHere: () => installedBun() !== undefined,
    whereElse: '`node scripts/install.mjs bun` installs it',
  },
  partysocket: { title: 'partysocket over ws', file: './partysocket.mjs', modes: ['text'] },
  reconnecting: { title: 'reconnecting-websocket over ws', file: './reconnecting.mjs', modes: ['text'] },
  graphql: { title: 'graphql-ws over ws (own protocol)', file: './graphql.mjs', modes: ['text'], protocol: 'graphql' },
  centrifuge: {
    title: 'centrifuge over ws (own protocol)',
    file: './centrifuge.mjs',
    modes: ['text'],
    protocol: 'centrifuge',
  },
  ours: { ...ours('ours', {}), modes: ['text', 'bytes', 'held'] },
  ours3: ours('ours, 3 operators', { operators: 3 }),
  ours6: ours('ours, 6 operators', { operators: 6 }),
  oursPlain: ours('ours, plain path', { isPlain: true }),
};

/** Loads a peer's file and opens it. */
export const open = async (name, to) => {
  const { file, args } = peers[name];
  const peer = await import(file);
  return peer.open({ ...to, ...args });
};

// The peers, each with its best options; `ours` as it stands, behind operators, and over the plain path.
//
// A peer opens `origin + path` and calls `take` with the length of each payload: of its text (`mode` is `text`: a string must
// have been made), or of its bytes (`bytes`). Only `raw` knows no frames: it calls `takeBytes`.
const ours = (title, args) => ({ title, file: './ours.mjs', modes: ['text', 'bytes'], args });

/** Every peer by its name: which file receives, what it can hand over, which protocol its sender must speak. */
export const peers = {
  raw: { title: 'raw socket (the limit)', file: './raw.mjs', modes: ['bytes'] },
  ws: { title: 'ws', file: './ws.mjs', modes: ['text', 'bytes'] },
  rxjs: { title: 'rxjs/webSocket over ws', file: './rxjs.mjs', modes: ['text'] },
  undici: { title: 'undici WebSocket', file: './undici.mjs', modes: ['text'] },
  global: { title: 'global WebSocket', file: './global.mjs', modes: ['text'], isHere: () => 'WebSocket' in globalThis },
  partysocket: { title: 'partysocket over ws', file: './partysocket.mjs', modes: ['text'] },
  reconnecting: { title: 'reconnecting-websocket over ws', file: './reconnecting.mjs', modes: ['text'] },
  graphql: { title: 'graphql-ws over ws (own protocol)', file: './graphql.mjs', modes: ['text'], protocol: 'graphql' },
  centrifuge: {
    title: 'centrifuge over ws (own protocol)',
    file: './centrifuge.mjs',
    modes: ['text'],
    protocol: 'centrifuge',
  },
  ours: ours('ours', {}),
  ours3: ours('ours, 3 operators', { operators: 3 }),
  ours6: ours('ours, 6 operators', { operators: 6 }),
  oursPlain: ours('ours, plain path', { isPlain: true }),
};

/** The titles of those that this Node does not have. */
export const missingPeers = () =>
  Object.values(peers).flatMap(({ title, isHere }) => (isHere && !isHere() ? [title] : []));

/** Loads a peer's file and opens it. */
export const open = async (name, to) => {
  const { file, args } = peers[name];
  const peer = await import(file);
  return peer.open({ ...to, ...args });
};

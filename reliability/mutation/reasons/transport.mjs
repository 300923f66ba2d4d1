/** Reasons for the survivors of src/transport, by file. */
export const transport = {
  'connect-socket.ts': [
    {
      code: 'export const originOf',
      to: '""',
      why: 'Only a key of a map: with one of the words left out, the two still differ.',
    },
    {
      code: 'const hostOf',
      mutator: 'Regex',
      why: 'Brackets stand at the two ends of a host name alone, so it does not matter where they are looked for.',
    },
  ],
  'open-connection.ts': [
    {
      code: "return () => socket.off('data', read)",
      why: 'Behind the teardown both listeners do nothing that is seen, and the socket goes within a second.',
    },
    {
      code: 'if (subscriber.closed) return',
      why: 'What is added to a subscriber that is closed is taken down at once.',
    },
  ],
  'post.ts': [
    {
      mutator: 'OptionalChaining',
      code: 'socket?.bytesRead',
      why: 'A client that was kept has answered, so it has a socket; this is for the type.',
    },
    {
      code: 'const wasUnanswered',
      from: 'warm.socket() === socket',
      why: 'A client ends with its socket (`ticket-client.ts`), so it has no other one; this is a second lock.',
    },
    {
      code: "given.body.on('error', noop)",
      why: 'Whoever reads the body listens as well; this is for one that nobody has begun to read.',
    },
    { code: 'if (!isWhole) aborter.abort()', why: 'A request that has ended has nothing that could be aborted.' },
  ],
  'frame-tap.ts': [
    {
      code: 'if (!isJoining) cursor.at = tellWholeFrames',
      why: 'The short way for frames that are there as a whole; the long way tells the same.',
    },
    {
      code: 'if (length > tap.maxFrameBytes',
      why: 'A frame of just the largest size is left to ws, which takes it too.',
    },
    { code: 'if (length > POOL_BYTES / 4)', why: 'Only how small frames share memory: their bytes are the same.' },
    { code: 'if (length > cursor.pool.length)', why: 'Only how small frames share memory: their bytes are the same.' },
  ],
  'handshake.ts': [
    {
      code: 'leftMs <= handshakeTimeoutMs',
      to: 'leftMs < handshakeTimeoutMs',
      why: 'Where both end in the same moment, either is to blame.',
    },
    {
      code: 'if (leftMs <= 0) fail(late)',
      to: 'leftMs < 0',
      why: 'With nothing left the deadline ends it at once, with the same failure.',
    },
    {
      code: 'if (leftMs <= 0) fail(late)',
      to: ';',
      why: 'With nothing left the deadline ends it a turn later, with the same failure.',
    },
    {
      code: 'if (webSocket === undefined) return',
      why: 'The failure was told before: what is thrown behind it reaches nobody.',
    },
  ],
  'whole-frames.ts': [
    {
      code: 'for (let i = 0; i < heads.length; i += 2)',
      to: 'i <= heads.length',
      why: 'Beyond the last head there is none: nothing is written.',
    },
    {
      code: 'zeroHead(bytes, heads[i]',
      to: 'i >= heads.length',
      why: 'The short way for texts that are all valid; the long way looks at each of them.',
    },
  ],
};

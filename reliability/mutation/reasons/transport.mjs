/** Reasons for the survivors of src/transport, by file. */
export const transport = {
  'connect.ts': [
    {
      code: 'export const originOf',
      to: '""',
      why: 'The text is only a key of a map. Without one of the words the keys still differ.',
    },
    {
      code: 'const hostOf',
      mutator: 'Regex',
      why: 'Only the two ends of a host name can be brackets, so the position in the pattern has no effect.',
    },
  ],
  'open-connection.ts': [
    {
      code: "return () => socket.off('data', read)",
      why: 'After the teardown both listeners have no visible effect, and the socket closes within a second.',
    },
    {
      code: 'if (subscriber.closed) return',
      why: 'A closed subscriber runs an added teardown at once.',
    },
  ],
  'request-ticket.ts': [
    {
      mutator: 'OptionalChaining',
      code: 'socket?.bytesRead',
      why: 'A reused client has answered before, so it has a socket. The check is for the type.',
    },
    {
      code: 'const wasUnanswered',
      from: 'stored.socket() === socket',
      why: 'A client ends with its socket (`createTicketClient`), so it never has another one. This is a second check.',
    },
    { code: 'if (!isComplete) aborter.abort()', why: 'Aborting a request that has ended does nothing.' },
  ],
  'read-frames.ts': [
    {
      code: 'if (length > handler.maxFrameBytes',
      why: 'A frame of exactly the largest size is left to `ws`, which accepts it.',
    },
    {
      code: 'for (let i = 0; i < heads.length; i += 2)',
      to: 'i <= heads.length',
      why: 'There is no head after the last one, so nothing is written.',
    },
    {
      code: 'zeroHead(bytes, heads[i]',
      to: 'i >= heads.length',
      why: 'A shortcut if all texts are valid. The general code checks each of them.',
    },
  ],
  'handshake.ts': [
    {
      code: 'leftMs <= handshakeTimeoutMs',
      to: 'leftMs < handshakeTimeoutMs',
      why: 'If both deadlines end at the same time, either failure is correct.',
    },
    {
      code: 'if (webSocket === undefined) return',
      why: 'The failure was reported before. A later exception has no effect.',
    },
  ],
};

/** Why the relay ends a stream that could go on. */
export type SentAway = 'closing' | 'sessionEnded';

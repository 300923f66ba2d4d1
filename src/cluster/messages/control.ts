import * as t from 'io-ts';
import { isRight } from '../../protocol/either.js';
import type { Offer, Presence, Question, Report } from '../election/election.js';
import { type ClusterKey, KeyCodec, KeyPhase } from '../election/cluster-key.js';

const QuestionCodec: t.Type<Question> = t.type({ gen: t.number, owner: t.string });
const ReportCodec: t.Type<Report> = t.type({ gen: t.number, owner: t.string, phase: KeyPhase, revision: t.number });
const PresenceCodec: t.Type<Presence> = t.type({ replica: t.string, since: t.number });
const OfferCodec: t.Type<Offer, unknown> = t.type({ key: KeyCodec, revision: t.number });
const VoidedCodec = t.type({ gen: t.number });
const EvictedCodec = t.type({ evictions: t.array(t.type({ leftMs: t.number })) });

/** Reads a message of a replica; `undefined` for bytes that are not such a message. */
type ReadControl<T> = (data: Uint8Array) => T | undefined;

const reader =
  <T>(codec: t.Decoder<unknown, T>): ReadControl<T> =>
  (data) => {
    try {
      const decoded = codec.decode(JSON.parse(Buffer.from(data).toString('utf8')));
      return isRight(decoded) ? decoded.right : undefined;
    } catch {
      return undefined;
    }
  };

/** Reads the messages between replicas that are not frames: JSON. */
export const readQuestion = reader(QuestionCodec);
/** Reads the answer of an owner. */
export const readReport = reader(ReportCodec);
/** Reads the message of a standby. */
export const readPresence = reader(PresenceCodec);
/** Reads an offer of the ownership. */
export const readOffer = reader(OfferCodec);
/** Reads the message of a replica that never sent its handshake. */
export const readVoided = reader(VoidedCodec);

/** Reads the evictions that a replica has not written into the key. */
export const readEvictions = reader(EvictedCodec);

/** A message between replicas that is not a frame. */
type Control =
  Question | Report | Presence | Offer | t.TypeOf<typeof VoidedCodec> | { readonly evictions: ClusterKey['evictions'] };

/** Returns the bytes of such a message. */
export const writeControl = (message: Control): Buffer => Buffer.from(JSON.stringify(message));

// What the errors of a NATS client mean.
import { JetStreamApiCodes, JetStreamApiError, JetStreamError } from '@nats-io/jetstream';
import {
  ConnectionError,
  PermissionViolationError,
  RequestError,
  type ServerInfo,
  TimeoutError,
} from '@nats-io/transport-node';
import { StoreAway } from '../log/line-store.js';
import { isError } from '../protocol/type-guards.js';

export const disconnected = (): Error => new ConnectionError('NATS is disconnected');

/** An error, and what has caused it. */
const causesOf = (error: unknown): readonly unknown[] => (isError(error) ? [error, error.cause] : [error]);

/** Whether the user has no permission. */
const isRefused = (error: unknown): boolean => causesOf(error).some((each) => each instanceof PermissionViolationError);

const awayErrors = [StoreAway, TimeoutError, RequestError, ConnectionError];

/** Whether a server may answer the same request later: nothing has arrived, or it says 503 without a code. */
export const isAway = (error: unknown, server: ServerInfo | undefined): boolean => {
  if (isRefused(error)) return false;
  if (error instanceof JetStreamApiError) return error.status === 503 && !error.apiError().err_code;
  // A server that was started without JetStream never has it. One of a cluster asks the others.
  if (isError(error) && error.name === 'JetStreamNotEnabled')
    return server === undefined || server.jetstream === true || server.cluster !== undefined;
  if (error instanceof JetStreamError) return true;
  return causesOf(error).some((each) => awayErrors.some((type) => each instanceof type));
};

/** Whether there is no such stream. */
export const isMissing = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamNotFound;

export const isConflict = (error: unknown): boolean =>
  error instanceof JetStreamApiError && error.code === JetStreamApiCodes.StreamWrongLastSequence;

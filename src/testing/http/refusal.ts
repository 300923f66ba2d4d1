/** The codes of all refusals of the service. */
export type RefusalCode =
  | 'not-found'
  | 'method-not-allowed'
  | 'upgrade-required'
  | 'request-too-large'
  | 'credential-service-unavailable'
  | 'invalid-api-key'
  | 'account-inactive'
  | 'not-entitled'
  | 'rate-limited'
  | 'invalid-body'
  | 'unknown-feed'
  | 'not-a-websocket-handshake'
  | 'shutting-down'
  | 'ticket-missing'
  | 'ticket-unknown'
  | 'ticket-consumed'
  | 'ticket-expired'
  | 'ticket-revoked'
  | 'address-mismatch'
  | 'subprotocol-mismatch'
  | 'capacity-full';

/** An HTTP refusal: the status of the contract, a code for programs, and a message for people. */
export interface Refusal {
  readonly status: number;
  readonly code: RefusalCode;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A row of a table of refusals. It applies if `when` returns `true` for the facts. */
export interface RefusalRule<Facts> extends Refusal {
  readonly when: (facts: Facts) => boolean;
}

/** Returns the first rule of a table that applies. */
export const firstRefusal = <Facts>(
  rules: readonly RefusalRule<Facts>[],
  facts: Facts,
): RefusalRule<Facts> | undefined => rules.find(({ when }) => when(facts));

/** Returns the body of a refusal: any JSON value. The contract does not show its format. */
export type ErrorBody = (refusal: Refusal) => unknown;

/** The default: `{ "error": { "code": …, "message": … } }`. */
export const defaultErrorBody: ErrorBody = ({ code, message }) => ({ error: { code, message } });

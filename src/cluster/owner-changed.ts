/** Another replica owns the connection now. A `gap` with the code `owner-changed` follows. */
export interface OwnerChanged {
  readonly type: 'owner-changed';
  /** When its first message was sent, in epoch ms by the clock of the owner. */
  readonly at: number;
  /** The id of the replica. */
  readonly owner: string;
  /** The number of the ownership. It grows with each change. */
  readonly generation: number;
}

export const natsServer: string;
export const redisServer: string;

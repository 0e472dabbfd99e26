// Sends messages and does them by a client that others wrote: node client.mjs CLIENT ENDPOINT QUEUE_URL COUNT. It says in
// lines of JSON what it does (package sqs reads them), and ends when its input does. With HELD set, a message is deleted
// once a line comes. CLOCK_OFF_MS is how far its clock is off.
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { SQS } from '@aws-sdk/client-sqs'
import { Consumer } from 'sqs-consumer'
import { Squiss } from 'squiss-ts'

const [client, endpoint, queueUrl, count] = process.argv.slice(2)
const sqs = new SQS({ endpoint, region: 'eu-west-1', systemClockOffset: Number(process.env.CLOCK_OFF_MS ?? 0) })
const say = (line) => process.stdout.write(JSON.stringify(line) + '\n')

const lines = createInterface({ input: process.stdin })
const held = process.env.HELD ? new Promise((resolve) => lines.once('line', resolve)) : undefined
lines.once('close', () => process.exit(0))

// When each message was asked for, by its receipt handle: it was received after that.
const asked = new Map()
sqs.middlewareStack.add(
  (next) => async (call) => {
    const at = Date.now()
    const answer = await next(call)
    for (const m of answer.output.Messages ?? []) asked.set(m.ReceiptHandle, at)
    return answer
  },
  { step: 'initialize' },
)

const does = (m) => {
  say({ does: m.Body, id: m.MessageId, receives: Number(m.Attributes.ApproximateReceiveCount), asked: asked.get(m.ReceiptHandle), at: Date.now() })
  asked.delete(m.ReceiptHandle)
}

// send sends all messages, and those of a batch that failed again. batch gets texts, and answers as SendMessageBatch.
async function send(batch) {
  for (let i = 0; i < Number(count); i += 10) {
    let left = Array.from({ length: Math.min(10, count - i) }, (_, k) => String(i + k))
    while (left.length > 0) {
      try {
        const { Failed: failed = [] } = await batch(left)
        left = failed.map((f) => left[Number(f.Id)])
      } catch (error) {
        say({ unsure: left, error: String(error) })
        await pause(100)
      }
    }
  }
}

const sendBySDK = (texts) =>
  sqs.sendMessageBatch({ QueueUrl: queueUrl, Entries: texts.map((text, i) => ({ Id: String(i), MessageBody: text })) })

const clients = {
  async 'aws-sdk'() {
    send(sendBySDK)
    for (;;) {
      try {
        const { Messages: messages = [] } = await sqs.receiveMessage({
          QueueUrl: queueUrl, MaxNumberOfMessages: 10, WaitTimeSeconds: 1, MessageSystemAttributeNames: ['ApproximateReceiveCount'],
        })
        if (messages.length === 0) continue
        messages.forEach(does)
        await held
        await sqs.deleteMessageBatch({ QueueUrl: queueUrl, Entries: messages.map((m, i) => ({ Id: String(i), ReceiptHandle: m.ReceiptHandle })) })
        if (held) messages.forEach((m) => say({ deleted: m.Body }))
      } catch (error) {
        say({ error: String(error) })
        await pause(100)
      }
    }
  },

  'sqs-consumer'() {
    send(sendBySDK)
    const consumer = Consumer.create({
      sqs, queueUrl, batchSize: 10, waitTimeSeconds: 1, messageSystemAttributeNames: ['ApproximateReceiveCount'],
      handleMessageBatch: async (messages) => {
        messages.forEach(does)
        await held
        return messages
      },
    })
    for (const event of ['error', 'processing_error']) consumer.on(event, (error) => say({ error: String(error) }))
    if (held) consumer.on('message_processed', (m) => say({ deleted: m.Body }))
    consumer.start()
  },

  async squiss() {
    const squiss = new Squiss({ SQS: sqs, queueUrl, receiveWaitTimeSecs: 1, receiveSqsAttributes: ['All'], deleteWaitMs: 100 })
    squiss.on('error', (error) => say({ error: String(error) }))
    squiss.on('message', async (m) => {
      does(m.raw)
      await held
      await m.del()
      if (held) say({ deleted: m.raw.Body })
    })
    send((texts) => squiss.sendMessages(texts))
    await squiss.start()
  },
}

await clients[client]()

package offline

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestJapanese(t *testing.T) {
	t.Parallel()
	keeps(t, []kept{
		{"はじめまして、中村葵です。", "ユーザーは中村葵です", memory.TypeIdentity},
		{"ロックはあまり好きではありません。", "ユーザーはロックはあまり好きではありません", memory.TypePreference},
		{"コーヒーが好きです。", "ユーザーはコーヒーが好きです", memory.TypePreference},
		{"私は肉を食べません。", "ユーザーは肉を食べません", memory.TypePreference},
		{"はじめまして、田中と申します。", "ユーザーは田中と申します", memory.TypeIdentity},
		{"名前は佐藤です。", "ユーザーの名前は佐藤です", memory.TypeIdentity},
		{"私は東京に住んでいます。", "ユーザーは東京に住んでいます", memory.TypeFact},
		{"僕はエンジニアです。", "ユーザーはエンジニアです", memory.TypeIdentity},
		{"ピーナッツアレルギーがあります。", "ユーザーはピーナッツアレルギーがあります", memory.TypeFact},
		{"子供が二人います。", "ユーザーの子供が二人います", memory.TypeFact},
		{"去年、大阪に引っ越しました。", "ユーザーは去年、大阪に引っ越しました", memory.TypeEvent},
		{"仕事を辞めることにしました。", "ユーザーは仕事を辞めることにしました", memory.TypeDecision},
		{"来年、日本語能力試験を受ける予定です。", "ユーザーは来年、日本語能力試験を受ける予定です", memory.TypeGoal},
		{"妹はローマに住んでいます。", "ユーザーの妹はローマに住んでいます", memory.TypeFact},
		{"金曜日までに報告書を出さなければなりません。", "ユーザーは金曜日までに報告書を出さなければなりません", memory.TypeTodo},
		{"好きな色は緑です。", "ユーザーの好きな色は緑です", memory.TypePreference},
		{"フランス語を勉強しています。", "ユーザーはフランス語を勉強しています", memory.TypeFact},
		{"緑茶のほうが好きです。", "ユーザーは緑茶のほうが好きです", memory.TypePreference},
		{"毎朝走っています。", "ユーザーは毎朝走っています", memory.TypeFact},
		{"月曜日に会議があります。", "ユーザーは月曜日に会議があります", memory.TypeEvent},
		{"私は三十四歳です。", "ユーザーは三十四歳です", memory.TypeIdentity},
	})
	leaves(t, []string{
		"こんにちは、お元気ですか？", "おはようございます！", "ありがとうございます。", "フランスの首都はどこですか？", "詩を書いてください。", "この文章を要約して下さい。",
		"冗談を教えて。", "質問があります。", "元気です。", "わかりました。", "はい、そうです。", "今日はいい天気ですね。", "また明日。",
		"パリはフランスの首都です。", "それが好きです。", "手伝ってくれますか", "どうやってご飯を炊きますか", "大丈夫です。", "了解です。", "やり方が知りたいです。",
	})
}

package offline

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

// japanese reads Japanese statements by their endings. The subject is mostly left out; ユーザー or the speaker's
// name takes its place.
type japanese struct {
	lead     *regexp.Regexp
	remember *regexp.Regexp
	chatter  *regexp.Regexp
	subject  *regexp.Regexp
	own      *regexp.Regexp
	group    *regexp.Regexp
	rules    []patternRule
	greets   *regexp.Regexp // who introduces himself
	named    *regexp.Regexp
}

func newJapanese() *japanese {
	rule := func(label memory.FactType, pattern string) patternRule {
		return patternRule{regexp.MustCompile(pattern), label}
	}
	end := `(?:です|だ|なんです|なんだ|でした|だった)?(?:よ|ね|よね|けど|が)?$`
	kin := `(?:妻|夫|子供|子ども|息子|娘|兄|弟|姉|妹|母|父|両親|祖母|祖父|彼女|彼氏|犬|猫|家族|友達|同僚|上司)`
	return &japanese{
		lead:     regexp.MustCompile(`^(?:こんにちは|こんばんは|おはようございます|おはよう|はじめまして|初めまして|はい|いいえ|ええと|えっと|あの|ちなみに|実は|あと|それと|そして|でも|ところで|ありがとうございます|ありがとう|なるほど|そうですね)[、。，,！!\s]*`),
		remember: regexp.MustCompile(`^(.+?)(?:こと|の)?を(?:覚えておいて|覚えて|メモして|忘れないで)(?:ください|下さい|ね|おいてください|ほしい)?`),
		chatter: regexp.MustCompile(`(?:か|かな|かしら|でしょうか)$|(?:て|で)(?:ください|下さい|くれ|もらえ|ほしい|欲しい|いただけ)|教えて|お願いし|お願い$|頼む|ありがとう|すみません|ごめん|` +
			`^(?:それ|これ|あれ|その|この)[がはをも]|知りたい|聞きたい|質問(?:が|は)あり|元気です$|(?:困って|悩んで|探して|待って|思って|考えて|知って|迷って)い(?:ます|る)$|わかりました|分かりました|了解|大丈夫です$|わかりません|分かりません|いいですね|面白いですね|天気|^今日は.*です$|^(?:この|その|あの)(?:答え|回答|返事|説明|例|文)|(?:宿題|課題)を|^(?:明日|また)また|また(?:明日|ね)|と思います(?:よ|ね)?$|でしょう$`),
		subject: regexp.MustCompile(`^(?:私|僕|ぼく|俺|わたし|わたくし|あたし|自分)(は|も|が|の)`),
		own:     regexp.MustCompile(`^(?:名前|趣味|仕事|職業|誕生日|出身|年齢|血液型|好きな[^、]{1,10}|嫌いな[^、]{1,10}|苦手な[^、]{1,10}|会社|専攻|夢|目標|` + kin + `)(?:は|が|の)`),
		group:   regexp.MustCompile(`(?:私|僕|俺)(?:たち|達|ら)|我々|うちの(?:チーム|会社|家族)|弊社`),
		greets:  regexp.MustCompile(`^(?:はじめまして|初めまして)`),
		named:   regexp.MustCompile(`^[\p{Han}\p{Hiragana}\p{Katakana}ー・\s]{2,12}(?:です|と申します)$`),
		rules: []patternRule{
			rule(memory.TypeDecision, `(?:こと|よう)に(?:しました|した|決めました|決めた|なりました)`+end+`|(?:決めました|決めた|決定しました|選びました)`+end),
			rule(memory.TypePreference, `(?:が|は|も|のほうが|の方が|を)(?:本当に|とても|一番|大)?(?:好き|大好き|嫌い|大嫌い|苦手|好み)`+end+`|好んで|が好きで|ハマっています|夢中です`),
			rule(memory.TypePreference, `(?:は|が|も)(?:もう|あまり|全然|そんなに)*(?:好き|得意)(?:では|じゃ)(?:ありません|ない|なくなりました)`+end),
			rule(memory.TypePreference, `^(?:私の)?(?:好きな|嫌いな|苦手な)[^、]{1,12}は.+`),
			rule(memory.TypePreference, `(?:ベジタリアン|ヴィーガン|菜食主義者?)`+end+`|(?:食べません|飲みません|食べられません|飲めません|食べない|飲まない)`+end),
			rule(memory.TypeFact, `アレルギー(?:が(?:あります|ある)|です|を持っています)?`+end),
			rule(memory.TypeIdentity, `(?:といいます|と言います|と申します|と呼ばれています)`+end+`|^(?:私の|僕の|俺の)?名前は.+|(?:歳|才)`+end+`|出身`+end+`|生まれ(?:ました|です|た)?`+end+`|生まれ育ち`),
			rule(memory.TypeTodo, `(?:なければなりません|なければならない|ないといけません|ないといけない|なきゃ|必要があります|忘れないようにし)`),
			rule(memory.TypeGoal, `(?:つもり|予定)`+end+`|たいと(?:思って|考えて)い(?:ます|る)|(?:行き|なり|学び|買い|始め|住み|作り|辞め|会い|暮らし|習い|働き)たい`+end+`|目指して(?:い)?(?:ます|る)|計画して(?:い)?(?:ます|る)|(?:目標|夢)は.+`),
			rule(memory.TypeEvent, `(?:引っ越し|引越し|結婚し|離婚し|卒業し|入学し|就職し|転職し|退職し|入社し|参加し|旅行し|購入し|出産し|合格し|開始し|予約し|始め|辞め|買い|売り|行っ|行き|行って来|行ってき|訪れ|もらい|飼い始め|付き合い始め)(?:まし)?た`+end+`|結婚します|引っ越します|出発します|始まります|開催されます`),
			rule(memory.TypeEvent, `(?:[月火水木金土日]曜日|明日|明後日|来週|来月|来年|今週末|[\d一二三四五六七八九十]+月(?:[\d一二三四五六七八九十]+日)?|[\d一二三四五六七八九十]+日).*(?:があります|に行きます|へ行きます|と会います|をします|です)`+end),
			rule(memory.TypeFact, `(?:住んで|暮らして|働いて|勤めて|勤務して|通って|飼って|使って|勉強して|習って|学んで|持って|経営して|担当して|教えて|運営して|練習して|集めて|付き合って|結婚して|続けて|作って|書いて|読んで|やって|走って|泳いで|歩いて|飲んで|食べて|弾いて|踊って|描いて|して)(?:い|お)?(?:ます|る|ました|た)`+end+`|(?:話せ|弾け|泳げ|できま|作れ)(?:ます|る|す)`+end),
			rule(memory.TypeFact, kin+`(?:が|は)?.{0,8}(?:います|いる|おります)`+end+`|^(?:私の|僕の)?`+kin+`(?:は|の).+`),
			rule(memory.TypeIdentity, `^(?:私|僕|俺|わたし)は[^、]{1,30}(?:です|だ|をしています)`+end),
			rule(memory.TypeFact, `^(?:私の|僕の)?(?:趣味|仕事|職業|誕生日|会社|専攻)は.+`),
		},
	}
}

// likeness counts kana, and ideographs beside them.
func (j *japanese) likeness(text string) int {
	kana, n := 0, 0
	for _, r := range text {
		switch {
		case unicode.In(r, unicode.Hiragana, unicode.Katakana):
			kana++
		case unicode.Is(unicode.Han, r):
			n++
		}
	}
	if kana == 0 {
		return 0
	}
	return 2 * (kana + n)
}

func (j *japanese) read(text string, who speaker) (statement, bool) {
	introduces := j.greets.MatchString(text)
	for range 4 { // greetings in a row
		text = j.lead.ReplaceAllString(text, "")
	}
	if m := j.remember.FindStringSubmatch(text); m != nil && len([]rune(m[1])) > 4 {
		text = strings.TrimSuffix(m[1], "という")
		if found, ok := j.match(text, who); ok {
			return found, true
		}
		return statement{j.third(text, who), memory.TypeFact}, true
	}
	if j.chatter.MatchString(text) {
		return statement{}, false
	}
	if introduces && j.named.MatchString(text) {
		return statement{j.third(text, who), memory.TypeIdentity}, true
	}
	return j.match(text, who)
}

func (j *japanese) match(text string, who speaker) (statement, bool) {
	for _, rule := range j.rules {
		if rule.pattern.MatchString(text) {
			return statement{j.third(text, who), rule.label}, true
		}
	}
	return statement{}, false
}

// third words a statement for its speaker. What is said of a group is quoted: nobody knows who belongs to it.
func (j *japanese) third(text string, who speaker) string {
	user := who.or("ユーザー")
	if j.group.MatchString(text) {
		return user + "の発言：" + text
	}
	if m := j.subject.FindStringSubmatch(text); m != nil {
		return user + m[1] + j.later(text[len(m[0]):], user)
	}
	if j.own.MatchString(text) {
		return user + "の" + j.later(text, user)
	}
	return user + "は" + j.later(text, user)
}

// later replaces what refers to the speaker behind the beginning.
func (j *japanese) later(text, user string) string {
	return strings.NewReplacer("私の", user+"の", "僕の", user+"の", "俺の", user+"の", "私は", user+"は", "僕は", user+"は").Replace(text)
}

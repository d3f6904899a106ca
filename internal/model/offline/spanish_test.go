package offline

import (
	"testing"

	"github.com/holdfast-memory/holdfast/internal/memory"
)

func TestSpanish(t *testing.T) {
	t.Parallel()
	keeps(t, []kept{
		{"Ya no me gusta el café.", "Al usuario ya no le gusta el café", memory.TypePreference},
		{"En el equipo hemos decidido usar Rust.", "El usuario dice: En el equipo hemos decidido usar Rust", memory.TypeDecision},
		{"Me gusta el café.", "Al usuario le gusta el café", memory.TypePreference},
		{"No me gustan las aceitunas.", "Al usuario no le gustan las aceitunas", memory.TypePreference},
		{"Hola, me llamo Ana García.", "El usuario se llama Ana García", memory.TypeIdentity},
		{"Mi nombre es Luis.", "El usuario se llama Luis", memory.TypeIdentity},
		{"Vivo con mi esposa en Madrid.", "El usuario vive con su esposa en Madrid", memory.TypeFact},
		{"Soy enfermera en un hospital.", "El usuario es enfermera en un hospital", memory.TypeIdentity},
		{"Soy alérgico a los cacahuetes.", "El usuario es alérgico a los cacahuetes", memory.TypeFact},
		{"Tengo 34 años.", "El usuario tiene 34 años", memory.TypeIdentity},
		{"Tengo dos hijos y un perro.", "El usuario tiene dos hijos y un perro", memory.TypeFact},
		{"No como carne.", "El usuario no come carne", memory.TypePreference},
		{"Me mudé a Valencia el año pasado.", "El usuario se mudó a Valencia el año pasado", memory.TypeEvent},
		{"Decidimos usar Postgres.", "El usuario dice: Decidimos usar Postgres", memory.TypeDecision},
		{"He decidido dejar mi trabajo.", "El usuario ha decidido dejar su trabajo", memory.TypeDecision},
		{"Voy a casarme en junio.", "El usuario va a casarse en junio", memory.TypeGoal},
		{"Tengo que renovar el pasaporte antes del lunes.", "El usuario tiene que renovar el pasaporte antes del lunes", memory.TypeTodo},
		{"Mi hermana vive en Roma.", "El usuario dice: Mi hermana vive en Roma", memory.TypeFact},
		{"Recuerda que prefiero el té verde.", "El usuario prefiere el té verde", memory.TypePreference},
		{"Desde 2019 vivo en Sevilla.", "Desde 2019 el usuario vive en Sevilla", memory.TypeFact},
		{"Me gustaría aprender japonés.", "Al usuario le gustaría aprender japonés", memory.TypeGoal},
		{"Me llamo Ana y trabajo en Sevilla.", "El usuario se llama Ana y trabaja en Sevilla", memory.TypeIdentity},
		{"Quiero comprar una casa.", "El usuario quiere comprar una casa", memory.TypeGoal},
		{"Quiero mudarme a Lisboa.", "El usuario quiere mudarse a Lisboa", memory.TypeGoal},
	})
	leaves(t, []string{
		"Hola, ¿cómo estás?", "¡Buenos días!", "Gracias, fue muy útil.", "¿Cuál es la capital de Francia?", "¿Puedes escribirme un poema?",
		"Por favor, resume este texto.", "Cuéntame un chiste.", "Tengo una pregunta.", "Necesito ayuda con los deberes.", "Quiero saber cómo funciona.",
		"Estoy bien, gracias.", "No sé.", "Sí, claro.", "Hace buen tiempo.", "Me gusta tu respuesta.", "Tengo que irme.", "Hasta mañana.",
		"París es la capital de Francia.", "Vale, perfecto.", "¿Cómo cocino arroz?", "Estoy en casa.", "Tengo miedo.", "Espero tu respuesta.",
	})
}
